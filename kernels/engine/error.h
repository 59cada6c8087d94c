#pragma once
#include <stdexcept>
#include <string>

namespace saccade {

/// Every error that a user can meet says in one line what is wrong, where, and what was expected.
/// Its class decides the exit code of the command line.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
  virtual int exit_code() const { return 1; }
};

/// Wrong usage or configuration.
class UsageError : public Error {
 public:
  using Error::Error;
  int exit_code() const override { return 2; }
};

/// Input data, a run directory or one of its files is missing, damaged or unusable.
class DataError : public Error {
 public:
  using Error::Error;
  int exit_code() const override { return 3; }
};

/// A device is missing, unsupported or failed, or memory does not suffice.
class DeviceError : public Error {
 public:
  using Error::Error;
  int exit_code() const override { return 4; }
};

}  // namespace saccade
