#include "ui/page.h"

#include <algorithm>

namespace saccade::ui {
namespace {
std::vector<Page>& registered() {
  static std::vector<Page> list;
  return list;
}
}  // namespace

const std::vector<Page>& pages() { return registered(); }

RegisterPage::RegisterPage(Page page) {
  auto& list = registered();
  const auto place = std::upper_bound(list.begin(), list.end(), page, [](const Page& a, const Page& b) { return a.order < b.order; });
  list.insert(place, std::move(page));
}

}  // namespace saccade::ui
