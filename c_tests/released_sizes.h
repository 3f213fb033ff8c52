/* How large each struct with a struct_size was when it was first released: what is shorter is no such struct. The sizes
 * are written down here, and not taken from the header, because they stay when a struct grows. */
#ifndef RELEASED_SIZES_H
#define RELEASED_SIZES_H

#include <bowstring.h>

#define RELEASED(name, bytes) (sizeof(void *) == 8 ? (size_t)(bytes) : sizeof(name))

#define FIRST_BowstringBufferInfo RELEASED(BowstringBufferInfo, 88)
#define FIRST_BowstringBufferMemory RELEASED(BowstringBufferMemory, 48)
#define FIRST_BowstringCallbackScope RELEASED(BowstringCallbackScope, 32)
#define FIRST_BowstringDeviceBackend RELEASED(BowstringDeviceBackend, 152)
#define FIRST_BowstringLiveCounts RELEASED(BowstringLiveCounts, 72)
#define FIRST_BowstringNodeInfo RELEASED(BowstringNodeInfo, 112)
#define FIRST_BowstringPlacement RELEASED(BowstringPlacement, 80)
#define FIRST_BowstringPythonApi RELEASED(BowstringPythonApi, 240)
#define FIRST_BowstringStreamCallbacks RELEASED(BowstringStreamCallbacks, 64)
#define FIRST_BowstringTensorOptions RELEASED(BowstringTensorOptions, 32)
#define FIRST_BowstringTransferOptions RELEASED(BowstringTransferOptions, 72)
#define FIRST_BowstringTypeNodeInfo RELEASED(BowstringTypeNodeInfo, 80)
#define FIRST_BowstringValidateOptions RELEASED(BowstringValidateOptions, 88)

#endif
