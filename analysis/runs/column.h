#pragma once
#include <initializer_list>
#include <memory>
#include <utility>
#include <vector>

namespace saccade {

/// Numbers that copies share until one of them is written to. Copies may be read in several threads; one object, as ever, in one.
class Column {
 public:
  Column() = default;
  Column(std::initializer_list<double> values) : values_(std::make_shared<std::vector<double>>(values)) {}
  Column(std::vector<double> values) : values_(std::make_shared<std::vector<double>>(std::move(values))) {}

  const std::vector<double>& values() const {
    static const std::vector<double> none;
    return values_ ? *values_ : none;
  }
  operator const std::vector<double>&() const { return values(); }
  /// To write: a copy of its own first, where it is shared.
  std::vector<double>& edit() {
    if (!values_) values_ = std::make_shared<std::vector<double>>();
    if (values_.use_count() > 1) values_ = std::make_shared<std::vector<double>>(*values_);
    return *values_;
  }

  size_t size() const { return values().size(); }
  bool empty() const { return values().empty(); }
  double operator[](size_t i) const { return (*values_)[i]; }
  double front() const { return values().front(); }
  double back() const { return values().back(); }
  auto begin() const { return values().begin(); }
  auto end() const { return values().end(); }
  void push_back(double value) { edit().push_back(value); }
  void resize(size_t size, double value = 0) { edit().resize(size, value); }
  void clear() { values_.reset(); }
  /// Gives back room to grow; where the numbers are shared, nothing.
  void shrink() {
    if (values_ && values_.use_count() == 1) values_->shrink_to_fit();
  }

  bool shares(const Column& other) const { return values_ == other.values_; }
  bool operator==(const Column& other) const { return shares(other) || values() == other.values(); }

 private:
  std::shared_ptr<std::vector<double>> values_;
};

}  // namespace saccade
