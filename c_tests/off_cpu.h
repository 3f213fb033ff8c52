// A device for Arrow C++ whose memory the CPU must not touch: its addresses have no access, and the device itself reads
// through a second mapping of the same pages.
#ifndef OFF_CPU_H
#define OFF_CPU_H

#include <arrow/api.h>
#include <arrow/c/bridge.h>
#include <arrow/device.h>
#include <arrow/io/api.h>

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace off_cpu {

constexpr std::size_t SIZE = 1 << 22;
inline unsigned char *readable, *addresses;
inline std::size_t used;
// How often the device copied to the CPU.
inline long copies;
// What a child found out; its exit code would be valgrind's to change.
inline int* outcome;
enum { NOTHING, CAME_BACK, FAULTED };

inline void* map(int protection, int flags, int file, std::size_t size) {
  void* at = mmap(nullptr, size, protection, flags, file, 0);
  if (at == MAP_FAILED) std::abort();
  return at;
}

// Where bytes are on the device, after they were put there.
inline const void* copy(const void* bytes, std::size_t size) {
  const std::size_t at = used;
  used += size / 64 * 64 + 64;
  if (used > SIZE) std::abort();
  if (size > 0) std::memcpy(readable + at, bytes, size);
  return addresses + at;
}

class device final : public arrow::Device {
 public:
  const char* type_name() const override { return "off_cpu"; }
  std::string ToString() const override { return "off_cpu"; }
  bool Equals(const Device& other) const override { return this == &other; }
  std::int64_t device_id() const override { return 0; }
  std::shared_ptr<arrow::MemoryManager> default_memory_manager() override;
  arrow::DeviceAllocationType device_type() const override { return arrow::DeviceAllocationType::kCUDA; }
};

class memory_manager final : public arrow::MemoryManager {
 public:
  explicit memory_manager(const std::shared_ptr<arrow::Device>& device) : MemoryManager(device) {}

  arrow::Result<std::shared_ptr<arrow::io::RandomAccessFile>> GetBufferReader(
      std::shared_ptr<arrow::Buffer>) override {
    return arrow::Status::NotImplemented("off_cpu");
  }
  arrow::Result<std::shared_ptr<arrow::io::OutputStream>> GetBufferWriter(std::shared_ptr<arrow::Buffer>) override {
    return arrow::Status::NotImplemented("off_cpu");
  }
  arrow::Result<std::unique_ptr<arrow::Buffer>> AllocateBuffer(std::int64_t) override {
    return arrow::Status::NotImplemented("off_cpu");
  }

 protected:
  arrow::Result<std::shared_ptr<arrow::Buffer>> CopyBufferTo(
      const std::shared_ptr<arrow::Buffer>& buffer, const std::shared_ptr<arrow::MemoryManager>& to) override {
    ARROW_ASSIGN_OR_RAISE(auto copied, CopyNonOwnedTo(*buffer, to));
    return std::shared_ptr<arrow::Buffer>(std::move(copied));
  }
  arrow::Result<std::unique_ptr<arrow::Buffer>> CopyNonOwnedTo(
      const arrow::Buffer& buffer, const std::shared_ptr<arrow::MemoryManager>& to) override {
    if (!to->is_cpu()) return nullptr;
    ARROW_ASSIGN_OR_RAISE(auto copied, to->AllocateBuffer(buffer.size()));
    const auto from = buffer.address(), start = reinterpret_cast<std::uintptr_t>(addresses);
    const bool is_ours = from >= start && from - start < SIZE;
    const void* source = is_ours ? readable + (from - start) : reinterpret_cast<const void*>(from);
    if (buffer.size() > 0) std::memcpy(copied->mutable_data(), source, static_cast<std::size_t>(buffer.size()));
    copies += is_ours;
    return copied;
  }
};

inline std::shared_ptr<memory_manager> the_manager;

inline std::shared_ptr<arrow::MemoryManager> device::default_memory_manager() { return the_manager; }

inline arrow::Result<std::shared_ptr<arrow::MemoryManager>> mapper(ArrowDeviceType type, std::int64_t id) {
  if (type == ARROW_DEVICE_CPU) return arrow::default_cpu_memory_manager();
  if (type != ARROW_DEVICE_CUDA || id != 0) return arrow::Status::Invalid("not the device that was exported");
  return the_manager;
}

inline void set_up() {
  const int file = memfd_create("off_cpu", 0);
  if (file < 0 || ftruncate(file, SIZE) != 0) std::abort();
  readable = static_cast<unsigned char*>(map(PROT_READ | PROT_WRITE, MAP_SHARED, file, SIZE));
  addresses = static_cast<unsigned char*>(map(PROT_NONE, MAP_SHARED, file, SIZE));
  close(file);
  outcome = static_cast<int*>(map(PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, sizeof(int)));
  the_manager = std::make_shared<memory_manager>(std::make_shared<device>());
}

inline void on_fault(int, siginfo_t* info, void*) {
  // Arrow C++ follows NULL where it is asked for memory that it cannot see, or the device's address; nothing else.
  const auto at = reinterpret_cast<std::uintptr_t>(info->si_addr);
  const auto start = reinterpret_cast<std::uintptr_t>(addresses);
  if (at < 4096 || (at >= start && at - start < SIZE)) *outcome = FAULTED;
  _exit(0);
}

// Its report on a fault takes it seconds, and is about the peer.
inline bool under_valgrind() {
  const char* preloaded = std::getenv("LD_PRELOAD");
  return preloaded != nullptr && std::strstr(preloaded, "vgpreload") != nullptr;
}

// Whether a call ends its process by touching what it may not, in a child. Under valgrind nobody tries.
template <class Call>
bool faults(Call call) {
  if (under_valgrind()) return true;
  std::fflush(nullptr);
  *outcome = NOTHING;
  const pid_t child = fork();
  if (child < 0) std::abort();
  if (child == 0) {
    struct sigaction action = {};
    action.sa_sigaction = on_fault;
    action.sa_flags = SA_SIGINFO;
    sigaction(SIGSEGV, &action, nullptr);
    sigaction(SIGBUS, &action, nullptr);
    call();
    *outcome = CAME_BACK;
    _exit(0);
  }
  int status = 0;
  if (waitpid(child, &status, 0) != child) std::abort();
  return *outcome == FAULTED;
}

}  // namespace off_cpu

#endif
