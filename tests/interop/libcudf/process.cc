#include "process.h"

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

std::string in_a_child(const std::function<std::string()>& work) {
  int ends[2];
  if (pipe(ends) != 0) return "no pipe";
  const pid_t child = fork();
  if (child == 0) {
    const rlimit no_core{0, 0};
    setrlimit(RLIMIT_CORE, &no_core);
    const std::string found = work();
    std::size_t written = 0;
    for (ssize_t n = 0; written < found.size() && n >= 0; written += static_cast<std::size_t>(n < 0 ? 0 : n))
      n = write(ends[1], found.data() + written, found.size() - written);
    _exit(written < found.size());
  }
  close(ends[1]);
  std::string all;
  char bytes[4096];
  for (ssize_t n; (n = read(ends[0], bytes, sizeof bytes)) > 0;) all.append(bytes, static_cast<std::size_t>(n));
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  if (WIFSIGNALED(status)) return "signal " + std::to_string(WTERMSIG(status));
  if (status != 0) return "exit status " + std::to_string(WEXITSTATUS(status));
  return all.empty() ? "nothing" : all;
}
