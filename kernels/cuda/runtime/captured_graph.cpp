#include "kernels/engine/captured_graph.h"

#ifdef SACCADE_CUDA
#include <cuda_runtime.h>

#include "kernels/cuda/runtime/check.h"
#include "kernels/engine/cuda_runtime.h"
#include "kernels/engine/plain.h"
#endif

namespace saccade::cuda {
namespace {

bool enabled = true;

}  // namespace

void CapturedGraph::set_enabled(bool on) { enabled = on; }

#ifdef SACCADE_CUDA

struct CapturedGraph::Graph {
  cudaGraphExec_t executable = nullptr;

  Graph(Stream s, const std::function<void()>& work) {
    cudaGraph_t graph = nullptr;
    check(cudaStreamBeginCapture(s, cudaStreamCaptureModeRelaxed));
    try {
      work();
    } catch (...) {
      (void)cudaStreamEndCapture(s, &graph);
      if (graph) (void)cudaGraphDestroy(graph);
      (void)cudaGetLastError();
      throw;
    }
    check(cudaStreamEndCapture(s, &graph));
    const cudaError_t status = cudaGraphInstantiate(&executable, graph, 0);
    (void)cudaGraphDestroy(graph);
    check(status);
  }
  ~Graph() { (void)cudaGraphExecDestroy(executable); }
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;
};

void CapturedGraph::operator()(Device device, const std::function<void()>& work) {
  if (!device.is_cuda() || !enabled || plain_kernels() || ++runs_ == 1) return work();
  Stream s = stream(device.index);
  if (!graph_) graph_ = std::make_unique<Graph>(s, work);
  check(cudaGraphLaunch(graph_->executable, s));
}

#else

struct CapturedGraph::Graph {};
void CapturedGraph::operator()(Device, const std::function<void()>& work) { work(); }

#endif

CapturedGraph::CapturedGraph() = default;
CapturedGraph::~CapturedGraph() = default;
CapturedGraph::CapturedGraph(CapturedGraph&&) noexcept = default;

}  // namespace saccade::cuda
