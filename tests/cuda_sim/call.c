/* What every call of the driver has in common: log, failures on request, initialisation, context. And the faults. */
#include "sim.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_ORDERS 32

typedef struct {
  char function[48]; /* "" for any */
  int64_t left;
  int code, how;
  bool standing, came_true;
} Order;

static Order orders[MAX_ORDERS];
static LIST(char *) faults;

void sim_note(Call *call, const char *format, ...) {
  size_t used = strlen(call->arguments);
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(call->arguments + used, sizeof call->arguments - used, format, arguments);
  va_end(arguments);
}

/* What an order says about this call: its code, or -1 for none. */
int sim_injected(const char *function, bool *breaks) {
  for (Order *order = orders; order < orders + MAX_ORDERS; order++) {
    if (!order->standing || (order->function[0] && strcmp(order->function, function) != 0)) continue;
    if (order->left > 1) {
      order->left--;
      continue;
    }
    order->came_true = true;
    *breaks = order->how == CUDA_SIM_STICKY;
    if (order->how != CUDA_SIM_FROM_THEN_ON) order->standing = false;
    return order->code;
  }
  return -1;
}

void sim_forget_orders(void) { memset(orders, 0, sizeof orders); }

static bool refuse(Call *call, CUresult code) {
  call->result = code;
  return false;
}

bool sim_begin(Call *call) {
  sim_lock();
  Thread *thread = sim_thread();
  call->result = CUDA_SUCCESS;
  call->entry = sim_log_begin(call);
  if (thread->in_host_function) {
    sim_fault("%s was called by a host function", call->name);
    return refuse(call, CUDA_ERROR_NOT_PERMITTED);
  }
#ifdef CUDA_SIM_STUB
  if (!(call->needs & CONTROL)) return refuse(call, CUDA_ERROR_STUB_LIBRARY);
#endif
  if (!(call->needs & CONTROL)) {
    bool breaks = false;
    int code = sim_injected(call->name, &breaks);
    if (code >= 0) {
      if (breaks && sim_current()) sim_break(sim_current(), (CUresult)code);
      return refuse(call, (CUresult)code);
    }
  }
  if ((call->needs & NEEDS_INIT) && !sim.initialised) return refuse(call, CUDA_ERROR_NOT_INITIALIZED);
  if ((call->needs & NEEDS_CONTEXT) == NEEDS_CONTEXT) {
    call->context = sim_current();
    if (!call->context) return refuse(call, CUDA_ERROR_INVALID_CONTEXT);
    if (!call->context->alive) {
      sim_fault("%s: the current context was destroyed", call->name);
      return refuse(call, CUDA_ERROR_CONTEXT_IS_DESTROYED);
    }
    if (call->context->broken) return refuse(call, call->context->broken);
  }
  if (sim_capture_forbids(call)) return refuse(call, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  return true;
}

CUresult sim_end(Call *call) {
  sim_log_end(call);
  CUresult result = call->result;
  sim_unlock();
  return result;
}

void sim_fault(const char *format, ...) {
  char text[400];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  char *copy = sim_resize(NULL, strlen(text) + 1);
  PUSH(faults, strcpy(copy, text));
  if (!sim.settings[SET_ABORT_ON_FAULT]) return;
  fprintf(stderr, "cuda_sim: %s\n", text);
  abort();
}

void sim_forget_fault_texts(void) {
  for (size_t i = 0; i < faults.n; i++) free(faults.at[i]);
  free(faults.at);
  memset(&faults, 0, sizeof faults);
}

EXPORT int64_t cuda_sim_faults(void) {
  sim_lock();
  int64_t n = (int64_t)faults.n;
  sim_unlock();
  return n;
}

EXPORT const char *cuda_sim_fault_text(int64_t n) {
  sim_lock();
  const char *text = n >= 0 && (size_t)n < faults.n ? faults.at[n] : "";
  sim_unlock();
  return text;
}

EXPORT int64_t cuda_sim_forget_faults(void) {
  sim_lock();
  int64_t n = (int64_t)faults.n;
  sim_forget_fault_texts();
  sim_unlock();
  return n;
}

EXPORT int cuda_sim_fail(const char *function, int64_t nth, int code, int how) {
  if (nth < 1 || code < 0 || how < CUDA_SIM_ONCE || how > CUDA_SIM_STICKY) return -1;
  if (function && (strlen(function) >= sizeof orders[0].function || !function[0])) return -1;
  int result = -1;
  sim_lock();
  for (Order *order = orders; result && order < orders + MAX_ORDERS; order++) {
    if (order->standing) continue;
    memset(order, 0, sizeof *order);
    if (function) strcpy(order->function, function);
    order->left = nth;
    order->code = code;
    order->how = how;
    order->standing = true;
    result = 0;
  }
  sim_unlock();
  return result;
}

EXPORT int cuda_sim_fail_nothing(void) {
  int unmet = 0;
  sim_lock();
  for (Order *order = orders; order < orders + MAX_ORDERS; order++) unmet += order->standing && !order->came_true;
  sim_forget_orders();
  sim_unlock();
  return unmet;
}
