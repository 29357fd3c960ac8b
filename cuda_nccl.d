cuda_nccl.o: lib/engine/comm/cuda_nccl.cpp lib/engine/unit/tensor.hpp \
 lib/engine/comm/nccl.hpp lib/engine/comm/group.hpp \
 lib/engine/device/memory.hpp lib/engine/device/view.hpp \
 lib/engine/tree/tree.hpp lib/foundation/base/error.hpp \
 lib/engine/comm/agree.hpp lib/engine/comm/gpu_group.hpp \
 lib/engine/comm/nodes.hpp lib/engine/device/cuda.hpp \
 lib/engine/device/backend.hpp lib/engine/device/operations.hpp \
 lib/engine/device/arithmetic.hpp lib/engine/device/tensor.hpp \
 lib/engine/device/tree.hpp
lib/engine/unit/tensor.hpp:
lib/engine/comm/nccl.hpp:
lib/engine/comm/group.hpp:
lib/engine/device/memory.hpp:
lib/engine/device/view.hpp:
lib/engine/tree/tree.hpp:
lib/foundation/base/error.hpp:
lib/engine/comm/agree.hpp:
lib/engine/comm/gpu_group.hpp:
lib/engine/comm/nodes.hpp:
lib/engine/device/cuda.hpp:
lib/engine/device/backend.hpp:
lib/engine/device/operations.hpp:
lib/engine/device/arithmetic.hpp:
lib/engine/device/tensor.hpp:
lib/engine/device/tree.hpp:
