"""The equations of the golden files in plain PyTorch, to be read beside the papers, with the roundings of training in bf16.

Run inside `rounded()` in float32 they compute as torch.autocast in bf16 and the published kernels do: every tensor that goes from one op to
the next and its gradient are stored in bf16; both operands of a matrix product are bf16 and its sums float32; parameters, norms, softmax,
cumulative sums, decays and the states of recurrences are float32. Outside of it nothing is rounded, so the same lines in float64 are the
truth. What each function takes and returns has the shapes of the golden files: activations [B, T, C], heads [B, T, H, D], states
[B, H, K, V], weights [out, in].

Recurrences go chunk by chunk, as they are trained: a decay per head or none in chunks of 64 (fla, arXiv:2412.06464 section 3.3; Mamba-2,
arXiv:2405.21060 section 6), one per channel in chunks of 16 (arXiv:2312.06635 section 4.3). Mamba-1 scans token by token in float32
(arXiv:2312.00752 appendix D) unless its decay is one for all channels,
attention is FlashAttention-2's (arXiv:2307.08691 algorithms 1 and 2), without blocks.
"""
import contextlib
import math

import torch
import torch.nn.functional as F

NEVER = float("-inf")
_rounding = False


@contextlib.contextmanager
def rounded():
    global _rounding
    _rounding = True
    try:
        yield
    finally:
        _rounding = False


def narrow(x):
    return x.bfloat16().to(x.dtype) if _rounding else x


# ------------------------------------------------------------------------------------------------------------------- roundings
class _Stored(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return narrow(x)

    @staticmethod
    def backward(ctx, g):
        return narrow(g)


class _Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx, equation, a, b):
        ctx.equation, a, b = equation, narrow(a), narrow(b)
        ctx.save_for_backward(a, b)
        return torch.einsum(equation, a, b)

    @staticmethod
    def backward(ctx, g):
        a, b = ctx.saved_tensors
        g, (left, right), out = narrow(g), ctx.equation.split("->")[0].split(","), ctx.equation.split("->")[1]
        return None, torch.einsum(f"{out},{right}->{left}", g, b), torch.einsum(f"{out},{left}->{right}", g, a)


stored = _Stored.apply
product = _Product.apply


def linear(x, weight, bias=None):
    """x [..., in], weight [out, in] -> [..., out], stored."""
    y = product("ni,oi->no", x.reshape(-1, x.shape[-1]), weight).reshape(*x.shape[:-1], weight.shape[0])
    return stored(y if bias is None else y + bias)


# ------------------------------------------------------------------------------------------------------- norms and elementwise
def root_mean_square(x, eps):
    return x / torch.sqrt((x * x).mean(-1, keepdim=True) + eps)


def rms_norm(x, weight, eps):
    return stored(root_mean_square(x, eps) * weight)


def rms_norm_gate_first(x, z, weight, eps, groups=1):
    y = (x * F.silu(z)).unflatten(-1, (groups, -1))
    return stored(root_mean_square(y, eps).flatten(-2) * weight)


def rms_norm_gate_last(x, g, weight, eps):
    return stored(root_mean_square(x, eps) * weight * F.silu(g))


def layer_norm(x, weight, bias, eps):
    y = x - x.mean(-1, keepdim=True)
    return stored(root_mean_square(y, eps) * weight + bias)


def group_norm(x, weight, bias, eps, heads):
    y = x.unflatten(-1, (heads, -1))
    return stored(root_mean_square(y - y.mean(-1, keepdim=True), eps).flatten(-2) * weight + bias)


def l2_norm(x, eps):
    return stored(x / torch.sqrt((x * x).sum(-1, keepdim=True) + eps))


def unit_norm(x, eps):
    return stored(x / torch.sqrt((x * x).sum(-1, keepdim=True)).clamp(min=eps))


def softplus(x):
    return F.softplus(x, threshold=700.0)


def causal_conv(x, weight, bias=None, silu=True):
    """x [B, T, C], weight [C, W], tap W-1 on the token itself."""
    y = F.conv1d(F.pad(x.transpose(1, 2), (weight.shape[1] - 1, 0)), weight[:, None], bias, groups=weight.shape[0]).transpose(1, 2)
    return stored(F.silu(y) if silu else y)


def previous(x):
    return F.pad(x, (0, 0, 1, 0))[:, :-1]


def heads_of(x, heads):
    return x.unflatten(-1, (heads, -1))


def rotate(x, base):
    """Rotary positions, pairs (i, i + D/2); x [B, T, H, D]. Not stored."""
    half = x.shape[3] // 2
    angle = torch.arange(x.shape[1], dtype=x.dtype)[:, None] * (base ** -(torch.arange(half, dtype=torch.float64) / half)).to(x.dtype)
    c, s = angle.cos()[:, None], angle.sin()[:, None]
    return torch.cat((x[..., :half] * c - x[..., half:] * s, x[..., :half] * s + x[..., half:] * c), -1)


# ------------------------------------------------------------------------------------------------------------------- attention
class _Attention(torch.autograd.Function):
    """q, k, v [B, T, H, D], bias [B, H, T, T] or what broadcasts to it."""

    @staticmethod
    def forward(ctx, q, k, v, bias, scale):
        q, k, v = narrow(q), narrow(k), narrow(v)
        s = torch.einsum("bthd,bjhd->bhtj", q, k) * scale + bias
        top = s.amax(-1, keepdim=True)
        e = (s - top).exp()
        total = e.sum(-1, keepdim=True)
        o = narrow(torch.einsum("bhtj,bjhd->bthd", narrow(e), v) / total.transpose(1, 2))
        ctx.scale = scale
        ctx.save_for_backward(q, k, v, o, s, top + total.log())
        return o

    @staticmethod
    def backward(ctx, g):
        q, k, v, o, s, lse = ctx.saved_tensors
        g, p = narrow(g), (s - lse).exp()
        dv = torch.einsum("bhtj,bthd->bjhd", narrow(p), g)
        ds = p * (torch.einsum("bthd,bjhd->bhtj", g, v) - (g * o).sum(-1).transpose(1, 2)[..., None])
        dq, dk = (torch.einsum(e, narrow(ds), x) * ctx.scale for e, x in (("bhtj,bjhd->bthd", k), ("bhtj,bthd->bjhd", q)))
        return dq, dk, dv, None, None


def causal_bias(T, window, slopes, like):
    """0 where a query sees a key, else -inf; [T, T], or [H, T, T] with ALiBi's slopes. window 0: all keys before it."""
    distance = torch.arange(T)[:, None] - torch.arange(T)[None, :]
    hidden = (distance < 0) | (distance >= window if window > 0 else False)
    bias = torch.zeros(T, T, dtype=like.dtype) if slopes is None else -slopes.to(like.dtype)[:, None, None] * distance
    return bias.masked_fill(hidden, NEVER)


def prepared(x, gain, cfg):
    if cfg["qk_norm"] == "l2":
        x = x / torch.sqrt((x * x).sum(-1, keepdim=True) + 1e-12)
    elif cfg["qk_norm"] == "rms":
        x = root_mean_square(x, 1e-5) * gain
    return stored(rotate(x, cfg["rotary_base"]) if cfg["position"] == "rotary" else x)


def score_parts(x, cfg):
    """Prepared queries and keys, the scores' scale and bias, and the scores without a gradient."""
    q, k = prepared(x["q"], x.get("q_gain"), cfg), prepared(x["k"], x.get("k_gain"), cfg)
    T, H, d = q.shape[1:]
    scale = 1 / (cfg["temperature"] * (1 if cfg["qk_norm"] == "l2" else math.sqrt(d)))
    slopes = torch.tensor([2.0 ** (-8.0 * (h + 1) / H) for h in range(H)], dtype=torch.float64) if cfg["position"] == "alibi" else None
    bias = causal_bias(T, cfg["window"], slopes, q)
    return q, k, scale, bias, (product("bthd,bjhd->bhtj", q, k) * scale + bias)


def entropy(s):
    p, log = s.softmax(-1), s.log_softmax(-1)
    return -(p * torch.where(p > 0, log, torch.zeros_like(p))).sum(-1)


def attention(x, cfg):
    q, k, scale, bias, s = score_parts(x, cfg)
    return {"o": _Attention.apply(q, k, x["v"], bias, scale), "lse": s.logsumexp(-1), "entropy": entropy(s)}


def sliding_window_attention(x, cfg):
    q, k = ((stored(rotate(x[n], cfg["rope_base"])) if cfg["rope"] else x[n]) for n in "qk")
    return {"y": _Attention.apply(q, k, x["v"], causal_bias(q.shape[1], cfg["left"] + 1, None, q), cfg["scale"])}


def top1_element(x, cfg):
    """Straight through: the chosen value forward, the softmax's gradient backward."""
    *_, s = score_parts(x, cfg)
    p, chosen = s.softmax(-1), s.argmax(-1)
    w = F.one_hot(chosen, s.shape[-1]).to(p.dtype) - p.detach() + p
    return {"o": stored(product("bhtj,bjhd->bthd", w, x["v"])), "selected": chosen, "lse": s.logsumexp(-1), "entropy": entropy(s),
            "scores": s.log_softmax(-1)}


def top1_chunk(x, cfg):
    q, k, scale, bias, s = score_parts(x, cfg)
    B, H, T, _ = s.shape
    C = cfg["chunk"]
    own, starts = torch.arange(T) // C, range(0, T, C)
    score = torch.full((B, H, T, len(starts)), NEVER, dtype=s.dtype)
    for c, start in enumerate(starts):
        if start + C > T:
            continue  # only complete chunks can be chosen
        part = slice(start, start + C)
        z = s[..., part].logsumexp(-1) if cfg["selection"] == "exact" else product("bthd,bhd->bht", q, k[:, part].mean(1)) * scale
        score[:, :, own > c, c] = z[:, :, own > c].detach()
    chosen = torch.where(own > 0, score.argmax(-1), torch.full((B, H, T), -1))
    keep = (own[:, None] == own[None, :]) | (own == chosen[..., None])
    bias = bias.expand(B, H, T, T).masked_fill(~keep, NEVER)
    captured = s.masked_fill(own != chosen[..., None], NEVER).logsumexp(-1) - s.logsumexp(-1)
    return {"o": _Attention.apply(q, k, x["v"], bias, scale), "selected": chosen, "score": score,
            "lse": s.masked_fill(~keep, NEVER).logsumexp(-1), "captured_mass": captured.exp(), "scores": score}


# ----------------------------------------------------------------------------------------------------------------- recurrences
PER_HEAD, PER_CHANNEL = 64, 16  # tokens of a chunk


def chunks(length, tensors):
    for start in range(0, tensors[0].shape[1], length):
        yield [t[:, start : start + length] for t in tensors]


def lower(n, strict=False):
    return torch.ones(n, n).tril(-1 if strict else 0).bool()


def inverse_of_unit_lower(a):
    """(I - a)^-1 of strictly lower triangular a [..., n, n], in float32."""
    eye = torch.eye(a.shape[-1], dtype=a.dtype)
    return torch.linalg.solve_triangular(eye - a, eye.expand_as(a), upper=False, unitriangular=True)


def mamba1_scan(x, cfg):
    """h = a h + step u B, y = (C h + D u) silu(z)."""
    if "A_log" not in x:
        return mamba1_linear(x)
    u, A = x["u"], -torch.exp(x["A_log"])
    step = softplus(x["dt_raw"] + x["dt_bias"])
    h, ys = x["h0"] if "h0" in x else u.new_zeros(u.shape[0], u.shape[2], x["B"].shape[2]), []
    for t in range(u.shape[1]):
        h = torch.exp(step[:, t, :, None] * A) * h + (step[:, t] * u[:, t])[:, :, None] * x["B"][:, t, None, :]
        ys.append((h * x["C"][:, t, None, :]).sum(-1))
    return {"y": stored((torch.stack(ys, 1) + x["D"] * u) * F.silu(x["z"])), "final_state": h}


def mamba1_linear(x):
    """The same with one decay for all channels and states of a token, or none: linear attention of values step u, of which products are made."""
    u, step = x["u"], softplus(x["dt_raw"] + x["dt_bias"])
    g = -torch.exp(x["shared_A_log"]) * softplus(x["shared_raw"] + x["shared_bias"]) if "shared_raw" in x else u.new_zeros(u.shape[:2])
    h, ys = x["h0"] if "h0" in x else u.new_zeros(u.shape[0], u.shape[2], x["B"].shape[2]), []
    for v, k, q, lg in chunks(PER_HEAD, [stored(step * u), x["B"], x["C"], g]):
        c = lg.cumsum(1)
        gap = (c[:, :, None] - c[:, None]).masked_fill(~lower(c.shape[1]), NEVER)
        scores = product("btn,bsn->bts", q, k) * gap.exp()
        ys.append(product("bts,bsd->btd", scores, v) + product("btn,bdn->btd", q * c.exp()[..., None], h))
        h = c[:, -1].exp()[:, None, None] * h + product("bsn,bsd->bdn", k * (c[:, -1:] - c).exp()[..., None], v)
    return {"y": stored((stored(torch.cat(ys, 1)) + x["D"] * u) * F.silu(x["z"])), "final_state": h}


def mamba2_ssd(x, cfg):
    """S = a S + step B x^T, y = S^T C + D x; head h reads group h // (H / G) of B and C."""
    B, T, H, P = x["x"].shape
    of_head = torch.arange(H) // (H // x["B"].shape[2])
    step = softplus(x["dt_raw"] + x["dt_bias"])
    if "A_log" in x:
        g = -torch.exp(x["A_log"]) * step
    elif "shared_raw" in x:
        g = (-torch.exp(x["shared_A_log"]) * softplus(x["shared_raw"] + x["shared_bias"]))[..., None].expand(B, T, H)
    else:
        g = torch.zeros_like(step)
    S, ys = x["S0"] if "S0" in x else step.new_zeros(B, H, x["B"].shape[3], P), []
    for v, k, q, dt, lg in chunks(PER_HEAD, [x["x"], x["B"][:, :, of_head], x["C"][:, :, of_head], step, g]):
        c = lg.cumsum(1)
        gap = (c[:, :, None] - c[:, None]).masked_fill(~lower(c.shape[1])[:, :, None], NEVER)
        scores = product("bthn,bshn->btsh", q, k) * gap.exp() * dt[:, None]
        ys.append(product("btsh,bshp->bthp", scores, v) + product("bthn,bhnp->bthp", q * c.exp()[..., None], S))
        S = c[:, -1].exp()[..., None, None] * S + product("bshn,bshp->bhnp", k * ((c[:, -1:] - c).exp() * dt)[..., None], v)
    return {"y": stored(torch.cat(ys, 1) + x["D"][:, None] * x["x"]), "final_state": S}


def wkv_bonus(r, k, v, log_w, u, S):
    """y = (S + (u k) v^T)^T r, S = diag(w) S + k v^T."""
    S, ys = r.new_zeros(r.shape[0], r.shape[2], r.shape[3], v.shape[3]) if S is None else S, []
    for r, k, v, lw in chunks(PER_CHANNEL, [r, k, v, log_w]):
        c = lw.cumsum(1)
        before, after = c - lw, c[:, -1:] - c
        gap = (before[:, :, None] - c[:, None]).masked_fill(~lower(c.shape[1], strict=True)[:, :, None, None], NEVER)
        own = (r * u * k).sum(-1)
        scores = (r[:, :, None] * k[:, None] * gap.exp()).sum(-1) + torch.diag_embed(own.transpose(1, 2)).permute(0, 2, 3, 1)
        ys.append(product("btsh,bshv->bthv", scores, v) + product("bthk,bhkv->bthv", r * before.exp(), S))
        S = c[:, -1].exp()[..., None] * S + product("bshk,bshv->bhkv", k * after.exp(), v)
    return {"y": stored(torch.cat(ys, 1)), "final_state": S}


def wkv(x, cfg):
    """RWKV-5: w_raw [H, K]; RWKV-6: [B, T, H, K]."""
    return wkv_bonus(x["r"], x["k"], x["v"], -torch.exp(x["w_raw"]).expand(x["r"].shape), x["u"], x.get("S0"))


def wkv7(r, log_w, k, v, a, b, S=None):
    """S = diag(w) S + b (a^T S) + k v^T, y = S^T r. z_t = a_t^T S_{t-1} solves a unit lower triangular system in each chunk."""
    S, ys = r.new_zeros(r.shape[0], r.shape[2], r.shape[3], v.shape[3]) if S is None else S, []
    for r, lw, k, v, a, b in chunks(PER_CHANNEL, [r, log_w, k, v, a, b]):
        c, n = lw.cumsum(1), r.shape[1]
        before, after = c - lw, (c[:, -1:] - c).exp()

        def scores(x, at, y, strict):
            gap = (at[:, :, None] - c[:, None]).masked_fill(~lower(n, strict)[:, :, None, None], NEVER)
            return (x[:, :, None] * y[:, None] * gap.exp()).sum(-1).permute(0, 3, 1, 2)

        solve = inverse_of_unit_lower(scores(a, before, b, True))
        right = product("bhts,bshv->bthv", scores(a, before, k, True), v) + product("bthk,bhkv->bthv", a * before.exp(), S)
        z = product("bhts,bshv->bthv", solve, right)
        ys.append(product("bhts,bshv->bthv", scores(r, c, b, False), z) + product("bhts,bshv->bthv", scores(r, c, k, False), v)
                  + product("bthk,bhkv->bthv", r * c.exp(), S))
        S = c[:, -1].exp()[..., None] * S + product("bshk,bshv->bhkv", b * after, z) + product("bshk,bshv->bhkv", k * after, v)
    return {"y": stored(torch.cat(ys, 1)), "final_state": S}


def rwkv7_inner(r, d, k, v, iclr_raw, g, p, eps, heads):
    """What stands between the projections and the output matrix; all [B, T, C]. d in float32 or stored."""
    kk = unit_norm(heads_of(k * p["k_k"], heads), 1e-12).flatten(-2)
    rate, log_w = torch.sigmoid(iclr_raw), -math.exp(-0.5) * torch.sigmoid(d)
    k, b = stored(k * (1 + (rate - 1) * p["k_a"])), stored(kk * rate)
    out = wkv7(*(heads_of(t, heads) for t in (r, log_w, k, v, -kk, b)))
    y = group_norm(out["y"].flatten(-2), p["ln_w"], p["ln_b"], eps, heads)
    bonus = (heads_of(r, heads) * heads_of(k, heads) * p["r_k"]).sum(-1, keepdim=True) * heads_of(v, heads)
    return {"y": stored((y + bonus.flatten(-2)) * g), "final_state": out["final_state"]}


def wkv7_case(x, cfg):
    if "log_w" in x:
        return wkv7(*(x[n] for n in ("r", "log_w", "k", "v", "a", "b")), x.get("S0"))
    return rwkv7_inner(*(x[n] for n in ("r", "d", "k", "v", "iclr_raw", "g")), x, cfg["ln_eps"], cfg["H"])


def delta_rule(q, k, v, beta, scale, g=None, S=None):
    """S = e^g S, then S = S + beta k (v - S^T k)^T, y = scale S^T q. What a chunk writes solves a unit lower triangular system."""
    S, ys = q.new_zeros(q.shape[0], q.shape[2], q.shape[3], v.shape[3]) if S is None else S, []
    for q, k, v, beta, lg in chunks(PER_HEAD, [q, k, v, beta, torch.zeros_like(beta) if g is None else g]):
        c, n = lg.cumsum(1), q.shape[1]
        gap = (c[:, :, None] - c[:, None]).masked_fill(~lower(n)[:, :, None], NEVER).exp().permute(0, 3, 1, 2)
        a = product("bthk,bshk->bhts", k, k) * gap * beta.transpose(1, 2)[..., None]
        solve = inverse_of_unit_lower(-a.masked_fill(~lower(n, strict=True), 0))
        right = beta[..., None] * (v - product("bthk,bhkv->bthv", k * c.exp()[..., None], S))
        d = product("bhts,bshv->bthv", solve, right)
        y = product("bthk,bhkv->bthv", q * c.exp()[..., None], S) + product("bhts,bshv->bthv", product("bthk,bshk->bhts", q, k) * gap, d)
        ys.append(scale * y)
        S = c[:, -1].exp()[..., None, None] * S + product("bshk,bshv->bhkv", k * (c[:, -1:] - c).exp()[..., None], d)
    return {"y": stored(torch.cat(ys, 1)), "final_state": S}


def delta_rule_case(x, cfg):
    if "q" in x:
        return delta_rule(x["q"], x["k"], x["v"], x["beta"], cfg["scale"], x.get("g"), x.get("S0"))
    g = -torch.exp(x["A_log"]) * softplus(x["a_raw"] + x["dt_bias"]) if "a_raw" in x else None
    q, k = l2_norm(x["q_raw"], cfg["l2_eps"]), l2_norm(x["k_raw"], cfg["l2_eps"])
    return delta_rule(q, k, x["v"], stored(torch.sigmoid(x["beta_raw"])), cfg["scale"], g)


def taylor_features(x):
    d = x.shape[-1]
    return torch.cat((torch.ones_like(x[..., :1]), x / d**0.25, (x[..., :, None] * x[..., None, :]).flatten(-2) / math.sqrt(2 * d)), -1)


def based_linear_attention(q, k, v, eps=1e-12):
    """Linear attention with the features of 1 + s + s^2 / 2, s = q k / sqrt(d)."""
    wide = 1 + q.shape[3] + q.shape[3] ** 2
    S, Z, ys = q.new_zeros(q.shape[0], q.shape[2], wide, v.shape[3]), q.new_zeros(q.shape[0], 1, q.shape[2], wide), []
    for q, k, v in chunks(PER_HEAD, [q, k, v]):
        s = product("bthd,bshd->btsh", q, k) / math.sqrt(q.shape[3])
        weights = (1 + s + s * s / 2).masked_fill(~lower(q.shape[1])[:, :, None], 0)
        fq, fk = taylor_features(q), taylor_features(k)
        total = weights.sum(2) + (fq * Z).sum(-1)
        ys.append((product("btsh,bshv->bthv", weights, v) + product("bthf,bhfv->bthv", fq, S)) / (total[..., None] + eps))
        S, Z = S + product("bshf,bshv->bhfv", fk, v), Z + fk.sum(1, keepdim=True)
    return stored(torch.cat(ys, 1))


# ---------------------------------------------------------------------------------------------------------------------- mixers
def mamba1_mixer(x, p, cfg):
    inner, rank = p["D"].shape[0], p["dt_proj_w"].shape[1]
    states = (p["x_proj"].shape[0] - rank) // 2
    u, z = linear(x, p["in_proj"]).split(inner, -1)
    u = causal_conv(u, p["conv_w"], p["conv_b"]) if "conv_w" in p else stored(F.silu(u))
    low, B, C = linear(u, p["x_proj"]).split((rank, states, states), -1)
    scan = {"u": u, "z": z, "B": B, "C": C, "dt_raw": linear(low, p["dt_proj_w"]), "D": p["D"], "dt_bias": p["dt_proj_b"]}
    if "A_log" in p:
        scan["A_log"] = p["A_log"]
    if "shared_dt_w" in p:
        scan.update(shared_raw=linear(low, p["shared_dt_w"][None])[..., 0], shared_A_log=p["shared_A_log"], shared_bias=p["shared_dt_b"])
    return linear(mamba1_scan(scan, cfg)["y"], p["out_proj"])


def mamba2_mixer(x, p, cfg):
    """Rows of in_proj: z, x, B, C, step, and with one decay for all heads its step."""
    H, G, bc = cfg["H"], cfg["G"], 2 * cfg["G"] * cfg["N"]
    one = int("shared_dt_b" in p)
    inner = (p["in_proj"].shape[0] - bc - H - one) // 2
    z, xbc, dt, shared = linear(x, p["in_proj"]).split((inner, inner + bc, H, one), -1)
    xbc = causal_conv(xbc, p["conv_w"], p["conv_b"]) if "conv_w" in p else stored(F.silu(xbc))
    v, B, C = xbc.split((inner, bc // 2, bc // 2), -1)
    ssd = {"x": heads_of(v, H), "dt_raw": dt, "B": heads_of(B, G), "C": heads_of(C, G), "D": p["D"], "dt_bias": p["dt_bias"]}
    if "A_log" in p:
        ssd["A_log"] = p["A_log"]
    if one:
        ssd.update(shared_raw=shared[..., 0], shared_A_log=p["shared_A_log"], shared_bias=p["shared_dt_b"])
    y = mamba2_ssd(ssd, cfg)["y"].flatten(-2)
    y = rms_norm_gate_first(y, z, p["norm_w"], 1e-5, G) if "norm_w" in p else stored(y * F.silu(z))
    return linear(y, p["out_proj"])


def lerp(x, amount):
    """x moved towards the token before it."""
    return stored(x + (previous(x) - x) * amount)


def rwkv5_time_mix(x, p, cfg):
    r, k, v, g = (linear(lerp(x, 1 - p["mu_" + n]), p["W" + n]) for n in "rkvg")
    log_w = -torch.exp(p["decay"]).expand(heads_of(r, cfg["H"]).shape)
    y = wkv_bonus(*(heads_of(t, cfg["H"]) for t in (r, k, v)), log_w, p["bonus"], None)["y"]
    y = group_norm(y.flatten(-2), p["ln_w"], p["ln_b"], 64e-5, cfg["H"])
    return linear(stored(y * F.silu(g)), p["Wo"])


def rwkv5_channel_mix(x, p, cfg):
    k = stored(torch.relu(linear(lerp(x, 1 - p["mu_k"]), p["Wk"])) ** 2)
    return stored(torch.sigmoid(linear(lerp(x, 1 - p["mu_r"]), p["Wr"])) * linear(k, p["Wv"]))


def rwkv6_time_mix(x, p, cfg):
    """Order of mix_A and mix_B: w, k, v, r, g."""
    heads, rank = cfg["H"], p["mix_B"].shape[1]
    low = stored(torch.tanh(linear(lerp(x, p["mu_x"]), p["mix_A"].T))).unflatten(-1, (5, rank))
    more = stored(product("btnr,nrc->btnc", low, p["mix_B"])).unbind(2)
    w, k, v, r, g = (lerp(x, p["mu_" + n] + more[i]) for i, n in enumerate("wkvrg"))
    decay = p["decay"] + linear(stored(torch.tanh(linear(w, p["decay_A"].T))), p["decay_B"].T)
    r, k, v, g = linear(r, p["Wr"]), linear(k, p["Wk"]), linear(v, p["Wv"]), linear(g, p["Wg"])
    y = wkv_bonus(*(heads_of(t, heads) for t in (r, k, v, -torch.exp(decay))), p["bonus"], None)["y"]
    y = group_norm(y.flatten(-2), p["ln_w"], p["ln_b"], 64e-5, heads)
    return linear(stored(y * F.silu(g)), p["Wo"])


def rwkv6_channel_mix(x, p, cfg):
    k = stored(torch.relu(linear(lerp(x, p["mu_k"]), p["Wk"])) ** 2)
    return stored(torch.sigmoid(linear(lerp(x, p["mu_r"]), p["Wr"])) * linear(k, p["Wv"]))


def rwkv7_time_mix(x, p, cfg, v_first=None):
    """Output and the first layer's values, which later layers blend in."""
    xr, xw, xk, xv, xa, xg = (lerp(x, p["x_" + n]) for n in "rwkvag")
    r, k, v = linear(xr, p["Wr"]), linear(xk, p["Wk"]), linear(xv, p["Wv"])
    d = p["w0"] + linear(stored(torch.tanh(linear(xw, p["w1"].T))), p["w2"].T)
    low = lambda y, n: linear(linear(y, p[n + "1"].T), p[n + "2"].T)
    if v_first is None:
        v_first = v
    else:
        v = stored(v + (v_first - v) * torch.sigmoid(p["v0"] + low(xv, "v")))
    g = linear(stored(torch.sigmoid(linear(xg, p["g1"].T))), p["g2"].T)
    y = rwkv7_inner(r, d, k, v, p["a0"] + low(xa, "a"), g, p, 64e-5, cfg["H"])["y"]
    return linear(y, p["Wo"]), v_first


def rwkv7_channel_mix(x, p, cfg):
    return linear(stored(torch.relu(linear(lerp(x, p["x_k"]), p["Wk"])) ** 2), p["Wv"])


def deltanet_mixer(x, p, cfg):
    """Gated where the parameters have a decay."""
    q, k, v = (heads_of(causal_conv(linear(x, p["W" + n]), p["conv_" + n]), cfg["H"]) for n in "qkv")
    g = -torch.exp(p["A_log"]) * softplus(linear(x, p["Wa"]) + p["dt_bias"]) if "Wa" in p else None
    beta = stored(torch.sigmoid(linear(x, p["Wb"])))
    o = delta_rule(l2_norm(q, 1e-6), l2_norm(k, 1e-6), v, beta, q.shape[-1] ** -0.5, g)["y"]
    gate = (heads_of(linear(x, p["Wg"]), cfg["H"]),) if "Wg" in p else ()
    o = (rms_norm_gate_last if gate else rms_norm)(o, *gate, p["o_norm_w"], 1e-6)
    return linear(o.flatten(-2), p["Wo"])


def based_mixer(x, p, cfg):
    """Its three layers, told apart by their parameters."""
    H = cfg.get("H")
    if "in_w" in p:
        a, b = linear(x, p["in_w"], p["in_b"]).chunk(2, -1)
        return linear(stored(causal_conv(a, p["conv_w"]) * b), p["out_w"], p["out_b"])
    if "Wq" in p:
        return linear(based_linear_attention(*(heads_of(linear(x, p["W" + n]), H) for n in "qkv")).flatten(-2), p["Wo"])
    q, k, v = (heads_of(t, H) for t in linear(x, p["Wqkv"]).chunk(3, -1))
    window = {"left": cfg["left"], "rope": 1, "rope_base": 10000.0, "scale": q.shape[-1] ** -0.5}
    return linear(sliding_window_attention({"q": q, "k": k, "v": v}, window)["y"].flatten(-2), p["Wo"])


def swiglu_mlp(x, p, cfg):
    return linear(stored(F.silu(linear(x, p["W_gate"])) * linear(x, p["W_up"])), p["W_down"])


# ---------------------------------------------------------------------------------------------------------------- whole models
def cross_entropy(logits, targets):
    return F.cross_entropy(logits.flatten(0, -2), targets.flatten().long())


def under(p, prefix):
    return {name[len(prefix):]: value for name, value in p.items() if name.startswith(prefix)}


def rwkv_layer(x, p, cfg, v_first):
    version = cfg["kind"]
    a, att, ffn = layer_norm(x, p["ln1_w"], p["ln1_b"], 1e-5), under(p, "att."), under(p, "ffn.")
    if version == "rwkv7":
        y, v_first = rwkv7_time_mix(a, att, cfg, v_first)
    else:
        y = (rwkv5_time_mix if version == "rwkv5" else rwkv6_time_mix)(a, att, cfg)
    x = stored(x + y)
    mix = {"rwkv5": rwkv5_channel_mix, "rwkv6": rwkv6_channel_mix, "rwkv7": rwkv7_channel_mix}[version]
    return stored(x + mix(layer_norm(x, p["ln2_w"], p["ln2_b"], 1e-5), ffn, cfg)), v_first


def stateful_model(p, cfg):
    """Tokens -> logits and loss of models.h5; the output matrix is the embedding except in RWKV."""
    kind, v_first = cfg["kind"], None
    x = stored(F.embedding(p["tokens"], p["emb"]))
    if kind.startswith("rwkv"):
        x = layer_norm(x, p["ln0_w"], p["ln0_b"], 1e-5)
        for l in range(cfg["layers"]):
            x, v_first = rwkv_layer(x, under(p, f"layer{l}."), cfg, v_first)
        logits = linear(layer_norm(x, p["ln_out_w"], p["ln_out_b"], 1e-5), p["head"])
    else:
        eps = 1e-6 if "deltanet" in kind else 1e-5
        mixer = {"mamba1": mamba1_mixer, "mamba2": mamba2_mixer, "based": based_mixer}.get(kind, deltanet_mixer)
        for l in range(cfg["layers"]):
            q = under(p, f"layer{l}.")
            x = stored(x + mixer(rms_norm(x, q["norm1_w"], eps), under(q, "mix."), cfg))
            if "norm2_w" in q:
                x = stored(x + swiglu_mlp(rms_norm(x, q["norm2_w"], eps), under(q, "mlp."), cfg))
        logits = linear(rms_norm(x, p["norm_f_w"], eps), p["emb"])
    return {"logits": logits, "loss": cross_entropy(logits, p["targets"])}


def transformer_pp(p, cfg):
    x = stored(F.embedding(p["tokens"], p["embedding"]))
    for l in range(cfg["layers"]):
        q = under(p, f"layer{l}.")
        a = rms_norm(x, q["attention_norm"], 1e-5)
        o = attention({s: heads_of(linear(a, q[n]), cfg["heads"]) for s, n in (("q", "query"), ("k", "key"), ("v", "value"))}, cfg)["o"]
        x = stored(x + linear(o.flatten(-2), q["output"]))
        a = rms_norm(x, q["mlp_norm"], 1e-5)
        x = stored(x + linear(stored(F.gelu(linear(a, q["gate"])) * linear(a, q["up"])), q["down"]))
    logits = linear(rms_norm(x, p["final_norm"], 1e-5), p["embedding"])
    return {"logits": logits, "loss": cross_entropy(logits, p["targets"])}


def avey_contexts(x, cfg):
    """x [B, N, S, D] -> each split with the best of those before it, [B, N, S (k+1), D]; what was chosen, weights, similarities."""
    B, N, S, D = x.shape
    k, unit = cfg["top_k"], x / (torch.sqrt((x * x).sum(-1, keepdim=True)) + 1e-8)
    chosen, weights, sims, contexts = torch.full((B, N, k), -1), x.new_zeros(B, N, k), x.new_full((B, N, N), NEVER), []
    for i in range(N):
        n, parts = min(i, k), []
        if n:
            asking = unit[:, i] if cfg["ranker_query"] == "split" else unit[:, i - 1]
            sim = product("bad,bpcd->bpac", asking, unit[:, :i]).amax(-1).sum(-1)
            top = sim.topk(n, 1).indices.sort(1).values
            score = torch.gather(sim, 1, top)
            reference = score.amax(1, keepdim=True) if cfg["weight_reference"] == "max" else score[:, :1]
            w = score / (reference + 1e-8) if cfg["weighting"] else torch.ones_like(score)
            sims[:, i, :i], chosen[:, i, :n], weights[:, i, :n] = sim.detach(), top, w.detach()
            picked = torch.gather(x[:, :i], 1, top[..., None, None].expand(-1, -1, S, D))
            parts.append(stored(picked * w[..., None, None]).flatten(1, 2))
        context = torch.cat((*parts, x[:, i]), 1)
        contexts.append(F.pad(context, (0, 0, S * (k + 1) - context.shape[1], 0)))
    return torch.stack(contexts, 1), {"chosen": chosen, "weights": weights, "maxsim": sims}


def avey_layer(h, p, cfg):
    """h [rows, context, D]."""
    z = stored(torch.relu(linear(rms_norm(h, p["norm"], 1e-10), p["enricher.weight"], p["enricher.bias"])) ** 2)
    tail = cfg["tail"]
    right, left, head = z.split((tail // 2, tail - tail // 2, z.shape[-1] - tail), -1)
    A = torch.tril(p["contextualizer"])
    if cfg["dynamic"]:
        u = stored(right / torch.sqrt((right * right).sum(-1, keepdim=True) + 1e-8))
        y = product("ntc,ncd->ntd", A * product("ntd,ncd->ntc", u, u), right)
    else:
        y = product("tc,ncd->ntd", A, right)
    mixed = stored(stored(y) * left)
    return stored(h + linear(torch.cat((mixed, head), -1), p["fuser.weight"], p["fuser.bias"]))


def avey(p, cfg):
    B, T = p["tokens"].shape
    S, D = cfg["split"], p["embedding"].shape[1]
    x = stored(F.embedding(p["tokens"], p["embedding"]))
    x = F.pad(x, (0, 0, 0, -T % S)).unflatten(1, (-1, S))
    h, ranked = avey_contexts(x, cfg)
    h = h.flatten(0, 1)
    for l in range(cfg["layers"]):
        h = avey_layer(h, under(p, f"layer{l}."), cfg)
    h = h[:, -S:].reshape(B, -1, D)[:, :T]
    logits = linear(rms_norm(h, p["final_norm"], 1e-10), p["embedding"])
    return {"logits": logits, "loss": cross_entropy(logits, p["targets"]), **ranked}
