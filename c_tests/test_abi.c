/* Our own header's foreign structs, and the frozen structs of the C API, byte for byte. */
#include <bowstring.h>

#include "abi_layout.h"

#include <stdio.h>
#include <string.h>

#include "check.h"

ABI_ARROW_LAYOUT;
ABI_ASYNC_LAYOUT;
ABI_DEVICE_NUMBERS;

/* Frozen: programs built against any version agree on these. */
ABI_SIZE(BowstringError, 1312);
ABI_AT(BowstringError, rule, 4);
ABI_AT(BowstringError, row, 8);
ABI_AT(BowstringError, batch, 16);
ABI_AT(BowstringError, native_code, 24);
ABI_AT(BowstringError, path, 32);
ABI_AT(BowstringError, message, 288);
ABI_SIZE(BowstringDevice, 16);
ABI_AT(BowstringDevice, id, 8);
ABI_SIZE(BowstringDataType, 4);
ABI_AT(BowstringDataType, bits, 1);
ABI_AT(BowstringDataType, lanes, 2);
ABI_SIZE(BowstringNode, 32);
ABI_AT(BowstringNode, null_count, 8);
ABI_AT(BowstringNode, offset, 16);
ABI_AT(BowstringNode, n_buffers, 24);
ABI_SIZE(BowstringOwnedBuffer, 32);
ABI_AT(BowstringOwnedBuffer, size_bytes, 8);
ABI_AT(BowstringOwnedBuffer, owner, 16);
ABI_AT(BowstringOwnedBuffer, release_owner, 24);
ABI_SIZE(BowstringSync, 16);
ABI_AT(BowstringSync, queue, 8);
ABI_SIZE(BowstringLayoutEntry, 16);
ABI_AT(BowstringLayoutEntry, role, 8);
ABI_AT(BowstringLayoutEntry, element, 12);

/* Sizes that may only grow; struct_size comes first. */
ABI_AT(BowstringPlacement, struct_size, 0);
ABI_AT(BowstringTypeNodeInfo, struct_size, 0);
ABI_AT(BowstringNodeInfo, struct_size, 0);
ABI_AT(BowstringBufferInfo, struct_size, 0);
ABI_AT(BowstringBufferMemory, struct_size, 0);
ABI_AT(BowstringCallbackScope, struct_size, 0);
ABI_AT(BowstringLiveCounts, struct_size, 0);
ABI_AT(BowstringPythonApi, struct_size, 0);
ABI_ASSERT(sizeof(BowstringPlacement) >= 80, "BowstringPlacement");
ABI_ASSERT(sizeof(BowstringTypeNodeInfo) >= 80, "BowstringTypeNodeInfo");
ABI_ASSERT(sizeof(BowstringNodeInfo) >= 112, "BowstringNodeInfo");
ABI_ASSERT(sizeof(BowstringBufferInfo) >= 88, "BowstringBufferInfo");

/* Numbers that programs were compiled with. */
ABI_ASSERT(BOWSTRING_OK == 0 && BOWSTRING_INVALID_ARGUMENT == 1 && BOWSTRING_INVALID_DATA == 2, "statuses");
ABI_ASSERT(BOWSTRING_NOT_CONFORMING == 3 && BOWSTRING_UNSUPPORTED == 4 && BOWSTRING_SYNC_REQUIRED == 5, "statuses");
ABI_ASSERT(BOWSTRING_RELEASED == 6 && BOWSTRING_OUT_OF_MEMORY == 7 && BOWSTRING_DEVICE_UNAVAILABLE == 8, "statuses");
ABI_ASSERT(BOWSTRING_DEVICE_ERROR == 9 && BOWSTRING_CALLBACK_ERROR == 10 && BOWSTRING_CANCELLED == 11, "statuses");
ABI_ASSERT(BOWSTRING_INTERNAL == 12, "statuses");
ABI_ASSERT(BOWSTRING_ROLE_VALIDITY == 0 && BOWSTRING_ROLE_OFFSETS == 1 && BOWSTRING_ROLE_SIZES == 2, "roles");
ABI_ASSERT(BOWSTRING_ROLE_TYPE_IDS == 3 && BOWSTRING_ROLE_VIEWS == 4 && BOWSTRING_ROLE_DATA == 5, "roles");
ABI_ASSERT(BOWSTRING_ROLE_VARIADIC == 6 && BOWSTRING_ROLE_VARIADIC_SIZES == 7, "roles");
ABI_ASSERT(BOWSTRING_SYNC_NONE == 0 && BOWSTRING_SYNC_QUEUE == 1 && BOWSTRING_SYNC_HOST == 2, "sync modes");
ABI_ASSERT(BOWSTRING_SYNC_LIBRARY == 3, "sync modes");
ABI_ASSERT(BOWSTRING_TYPE_IGNORE_NAMES == 1 && BOWSTRING_TYPE_IGNORE_METADATA == 2, "flags");
ABI_ASSERT(BOWSTRING_TYPE_IGNORE_NULLABLE == 4, "flags");

int main(void) {
  char version[32];
  snprintf(version, sizeof version, "%d.%d.%d", BOWSTRING_VERSION_MAJOR, BOWSTRING_VERSION_MINOR,
           BOWSTRING_VERSION_PATCH);
  CHECK_STR(bowstring_version(), version);
  CHECK_INT(bowstring_abi_version(), BOWSTRING_ABI_VERSION);

  static const char *const names[] = {
      "OK",       "INVALID_ARGUMENT", "INVALID_DATA",       "NOT_CONFORMING", "UNSUPPORTED",    "SYNC_REQUIRED",
      "RELEASED", "OUT_OF_MEMORY",    "DEVICE_UNAVAILABLE", "DEVICE_ERROR",   "CALLBACK_ERROR", "CANCELLED",
      "INTERNAL"};
  for (int i = 0; i <= BOWSTRING_INTERNAL; i++) CHECK_STR(bowstring_status_name(i), names[i]);
  CHECK_STR(bowstring_status_name(-1), "UNKNOWN");
  CHECK_STR(bowstring_status_name(BOWSTRING_INTERNAL + 1), "UNKNOWN");
  CHECK_STR(bowstring_status_name(INT32_MIN), "UNKNOWN");

  int rules = 0;
  for (int32_t i = 0; i < 1000; i++) {
    int is_rule = strlen(bowstring_rule_name(i)) > 0;
    CHECK_INT(strlen(bowstring_rule_text(i)) > 0, is_rule);
    rules += is_rule;
  }
  CHECK(rules >= 25);
  CHECK_STR(bowstring_rule_name(0), "");
  CHECK_STR(bowstring_rule_name(-1), "");
  CHECK_STR(bowstring_rule_name(INT32_MAX), "");
  CHECK_STR(bowstring_rule_text(INT32_MIN), "");
  return check_end(1000);
}
