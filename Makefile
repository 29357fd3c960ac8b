# zs: build, test, try, install. `make help` lists what there is.
SHELL := bash
PREFIX ?= /usr/local
TO = $(DESTDIR)$(PREFIX)
BUILD ?= build
# Where ccache is installed, a source that was compiled before, in any checkout, is not compiled again. ccache keeps no source
# that uses a precompiled header unless it may overlook the header's time and macros like __TIME__, which zs has none of.
CXX := $(if $(shell command -v ccache),ccache )g++
export CCACHE_NOHASHDIR ?= 1
export CCACHE_SLOPPINESS ?= pch_defines,time_macros,include_file_mtime,include_file_ctime
# Below 1.5 GB the compiler collects no garbage, which takes 3 to 7 % of its time; the object is the same.
COLLECT := --param=ggc-min-heapsize=1572864
export CCACHE_IGNOREOPTIONS ?= --param=ggc-*
# The fastest linker that is installed.
LINKER := $(or $(if $(shell command -v ld.lld),-fuse-ld=lld),$(if $(shell command -v ld.gold),-fuse-ld=gold))
OPT ?= -O2
JOBS ?= $(shell nproc)
FUZZ_SECONDS ?= 600
KILLS ?= 100
RUNS ?= 11500
PEERS ?= $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/zs/peers
# Without those by which GCC 12 doubts its own std::string (bug 105651).
WARN := -Wall -Wextra -Werror -Wno-array-bounds -Wno-restrict -Wno-stringop-overflow -Wno-stringop-overread
VERSION := $(shell git describe --always --dirty --tags 2>/dev/null || echo unknown)
# Later revisions have later versions.
DEB_VERSION = $(shell git log -1 --date=format:%Y%m%d.%H%M --format=0~git%cd.%h 2>/dev/null || echo 0~unknown)$(if $(findstring -dirty,$(VERSION)),+changed)

# ---- what there is to build: folders and files, found, not listed --------------------------------------------------
LIGHT := $(shell awk '$$2 == "tools" { print $$1 }' lib/LAYERS)
HEAVY := $(shell awk '$$2 == "train" { print $$1 }' lib/LAYERS)
# An include names a room without its layer: "parse/log.hpp".
FLOORS := $(sort $(patsubst %/,-Ilib/%,$(dir $(LIGHT) $(HEAVY))))
# A GPU's library, libzs-cuda.so: sources cuda*.cpp and *.cu (lib/engine/device/backend.hpp).
gpu_sources := $(wildcard lib/*/*/cuda*.cpp lib/*/*/*.cu)
sources = $(filter-out %_test.cpp $(gpu_sources),$(foreach d,$(1),$(wildcard lib/$(d)/*.cpp)))
tests = $(foreach d,$(1),$(wildcard lib/$(d)/*_test.cpp))
object = $(patsubst %.cu,$(BUILD)/obj/%.cu.o,$(patsubst %.cpp,$(BUILD)/obj/%.o,$(1)))
TOOLS := $(patsubst tools/%.cpp,%,$(wildcard tools/zs-*.cpp))
MPI_TESTS := $(patsubst tests/mpi/%.cpp,$(BUILD)/mpi/%,$(wildcard tests/mpi/*.cpp))
BENCHES := $(patsubst bench/%.cpp,$(BUILD)/bench/%,$(wildcard bench/*.cpp))
# Tools that do nothing without the engine, tools/engine.cpp, the one program with LibTorch and MPI.
HEAVY_TOOLS := zs-train
LIGHT_TOOLS := $(filter-out $(HEAVY_TOOLS),$(TOOLS))

# ---- the libraries outside ------------------------------------------------------------------------------------------
MULTIARCH := $(shell $(CXX) -print-multiarch)
HDF5_CFLAGS := $(shell pkg-config --cflags hdf5 2>/dev/null || echo -I/usr/include/hdf5/serial)
# The archive where there is one: the shared library loads libcurl, Kerberos and LDAP, 9 ms at every start of a tool.
HDF5_DIR := $(or $(patsubst -L%,%,$(firstword $(shell pkg-config --libs-only-L hdf5 2>/dev/null))),/usr/lib/$(MULTIARCH)/hdf5/serial)
HDF5_LIBS := $(if $(wildcard $(HDF5_DIR)/libhdf5.a),$(HDF5_DIR)/libhdf5.a -lsz -ldl,-L$(HDF5_DIR) -lhdf5)
LIGHT_LIBS := -Wl,--as-needed $(HDF5_LIBS) -lyaml-cpp -lboost_program_options -lboost_iostreams -lboost_filesystem -lfmt -lz -lcrypto -lre2 -lxxhash -lpcre2-8 -lutf8proc -lsentencepiece -lzstd -ljpeg -lpng16 -lsqlite3
MPI_CFLAGS := $(patsubst -I%,-isystem %,$(shell mpicxx --showme:compile 2>/dev/null))
MPI_LIBS := $(shell mpicxx --showme:link 2>/dev/null)
# LibTorch: what `make deps` fetched, or TORCH_HOME=FOLDER (of a PyTorch), or TORCH=debian (libtorch-dev).
ifeq ($(TORCH),debian)
override TORCH_HOME :=
TORCH_CFLAGS := -isystem /usr/include/torch/csrc/api/include
TORCH_LIBS := -luring -ltorch_cpu -lc10
IN_PLACE := $(BUILD)/obj/lib/formats/token/debian/sentencepiece.o
else ifneq ($(TORCH),)
$(error TORCH=$(TORCH) is not known; TORCH=debian takes the distribution's LibTorch, TORCH_HOME=FOLDER any other)
else
chosen_home := $(TORCH_HOME)
TORCH_HOME := $(or $(chosen_home),$(shell CUDA=$(CUDA) share/libtorch home),missing)
TORCH_CFLAGS := -isystem $(TORCH_HOME)/include -isystem $(TORCH_HOME)/include/torch/csrc/api/include
TORCH_LIBS = -luring -L$(TORCH_HOME)/lib -Wl,-rpath,'$$ORIGIN' $(HOME_RPATH) -ltorch_cpu -lc10
HOME_RPATH = -Wl,-rpath,$(TORCH_HOME)/lib
endif
HEAVY_LIBS = $(IN_PLACE) -L$(BUILD) $(PLANTED) $(or $(WHOLE),-lzs-train) -lzs $(LIGHT_LIBS) $(TORCH_LIBS) -lgomp $(MPI_LIBS)
# libzs-cuda.so is built where there are a GPU's driver, nvcc and a LibTorch with CUDA. CUDA=1 builds it without a driver, as on a
# login node; CUDA=0 never does. Its libraries are those beside that LibTorch, or the toolkit's; what a machine lacks of them is
# told when a GPU is asked for.
NVCC := $(or $(wildcard $(TORCH_HOME)/../nvidia/cu13/bin/nvcc),$(shell command -v nvcc 2>/dev/null))
# The headers of FlashAttention and CUTLASS.
KERNELS := $(if $(NVCC),$(shell share/libtorch kernels))
DRIVER := $(if $(CUDA),,$(shell command -v nvidia-smi || PATH=$$PATH:/sbin:/usr/sbin ldconfig -p | grep -o -m1 'libcuda\.so\.1 '))
WITH_CUDA := $(and $(filter-out 0,$(or $(CUDA),$(DRIVER))),$(filter-out debian,$(or $(TORCH),pypi)),$(NVCC),$(KERNELS),$(wildcard $(TORCH_HOME)/lib/libtorch_cuda.so))
comma := ,
WITHOUT_CUDA = $(or $(if $(filter 0,$(CUDA)),CUDA=0),$(if $(filter debian,$(TORCH)),Debian has a LibTorch without it),\
  $(if $(CUDA)$(DRIVER),,this machine has no driver of a GPU (no nvidia-smi$(comma) no libcuda.so.1). For GPUs of other machines: make deps all CUDA=1),\
  $(if $(wildcard $(TORCH_HOME)/lib/libtorch_cuda.so),there $(if $(NVCC),are no headers of FlashAttention,is no nvcc),this LibTorch has none); make deps CUDA=1 fetches what it needs)
TOOLKIT = $(abspath $(dir $(NVCC))..)
CUDA_FOLDERS = $(wildcard $(TORCH_HOME)/../nvidia/*/lib) $(TOOLKIT)/lib64
CUDA_CFLAGS = -fPIC $(addprefix -isystem ,$(wildcard $(TORCH_HOME)/../nvidia/*/include $(TORCH_HOME)/../include) $(TOOLKIT)/include)
SM ?= 80 90 $(if $(shell $(NVCC) --list-gpu-code 2>/dev/null | grep -x sm_100),100)
NVCC_FLAGS = -std=c++20 -O3 $(FLOORS) --expt-relaxed-constexpr --Werror all-warnings -Xcompiler -Wall,-Wextra,-fPIC \
  $(or $(FLAGS_$<),$(foreach v,$(SM),-gencode=arch=compute_$(v),code=sm_$(v)))
# Kernels of instructions that Hopper GPUs alone have.
FLAGS_lib/engine/kernel/cuda_hopper.cu = -gencode=arch=compute_90a,code=sm_90a --use_fast_math -DNDEBUG \
  -isystem $(KERNELS)/flash-attention/hopper -isystem $(KERNELS)/cutlass/include
# libtorch_cuda names libraries (of sparse products, of several nodes) that zs does not call.
CUDA_LIBS = -L$(TORCH_HOME)/lib -Wl,-rpath,'$$ORIGIN' -Wl,-rpath,$(TORCH_HOME)/lib -ltorch_cuda -lc10_cuda -ltorch_cpu -lc10 \
  $(CUDA_FOLDERS:%=-L%) $(CUDA_FOLDERS:%=-Wl,-rpath,%) -l:libcudart.so.13 -l:libcublasLt.so.13 -l:libcublas.so.13 \
  -l:libcudnn.so.9 -l:libnccl.so.2 -l:libnvrtc.so.13 -Wl,--allow-shlib-undefined
# The cache is one user's: what is installed brings the libraries that it has from there, and looks for them beside it alone.
CACHED := $(findstring /zs/libtorch-,$(TORCH_HOME))
CACHED_LIBS = $(if $(CACHED),$(shell ldd $(BUILD)/engine | sed -n 's|.*=> \($(dir $(TORCH_HOME))[^ ]*\) .*|\1|p'))
# Which products are fused with sums is part of the bits, and spelt out in the sources: compilers fuse nothing.
COMMON := -std=c++20 $(OPT) $(COLLECT) -g1 -ffp-contract=off $(WARN) -Ilib $(FLOORS) $(HDF5_CFLAGS) -DDOCTEST_CONFIG_SUPER_FAST_ASSERTS
# fmt from its headers: a LibTorch brings other ones than the distribution's library is made of.
HEAVY_FLAGS = $(COMMON) $(TORCH_CFLAGS) $(MPI_CFLAGS) -fopenmp-simd -DFMT_HEADER_ONLY
# What loops over numbers are compiled with, by path: for speed, no bit depends on it.
FLAGS_lib/engine/device/cpu.cpp := -O3 -fno-math-errno -fopenmp
FLAGS_lib/formats/image/transform.cpp := -O3
FLAGS_lib/engine/kernel/vector.cpp := -O3 -fno-math-errno -fno-trapping-math
# Styles and scripts of pages, and the list of models, are files of their own that become bytes of the program here.
FLAGS_lib/pages/report/assets.cpp := -O1
FLAGS_lib/engine/model/models.cpp := -O2
FLAGS_lib/foundation/cli/version.cpp = -DZS_VERSION='"$(VERSION)"'
# Rooms that read options and write pages have no loop to speed up: with -O1 they compile in three quarters of the time.
EASY := cli attribute optimizer config tracker chat flight checkpoints rolloutfile registry rollout input summary figure plot report experiment comparison recording
# A precompiled header serves those sources alone that are compiled as it was. A source with flags of its own goes without: with
# that header GCC 12 takes 9 s in place of 1.5, may crash, and leaves flags without effect.
PCH := $(BUILD)/pch/tensor.hpp
SHARED_PCH := $(BUILD)/pch/shared/tensor.hpp
LIGHT_PCH := $(BUILD)/pch/standard.hpp
EASY_PCH := $(BUILD)/pch/easy/standard.hpp
TEST_PCH := $(BUILD)/pch/test.hpp
# Unit tests of what computes no tensors are run more seldom than they are compiled.
TEST_OPT ?= -O0

# ---- what is compiled -----------------------------------------------------------------------------------------------
# UNITY=1 compiles sources in groups, half the work of a build from nothing, which is built so; UNITY=0 each by
# itself. A build folder stays what it is: where it has groups, sources that are edited leave theirs (share/unity).
UNITY := $(or $(UNITY),$(if $(wildcard $(BUILD)/unity),1,$(if $(wildcard $(BUILD)/obj),0,1)))
$(if $(filter 0,$(UNITY)),$(shell rm -rf $(BUILD)/unity))
vpath unity/%.cpp $(BUILD)
# What has flags of its own stays out of groups, and what ALONE names: a source that another takes the place of when linked.
own = $(foreach s,$(1),$(if $(FLAGS_$(s))$(filter $(s),$(ALONE)),$(s)))
EASY_ROOMS := $(foreach room,$(EASY),$(filter %/$(room),$(LIGHT)))
FAMILIES := easy tools train tests-tools tests-train
sources_easy := $(call sources,$(EASY_ROOMS))
sources_tools := $(call sources,$(filter-out $(EASY_ROOMS),$(LIGHT)))
sources_train := $(call sources,$(HEAVY))
sources_tests-tools := $(call tests,$(LIGHT))
sources_tests-train := $(call tests,$(HEAVY))
alone := $(call own,$(foreach f,$(FAMILIES),$(sources_$(f))))
# Targets that compile nothing do not look for groups.
compiles := $(filter-out help deps clean lint light-tools heavy-tools flags,$(or $(MAKECMDGOALS),all))
UNITS := $(if $(and $(compiles),$(filter 1,$(UNITY))),$(shell share/unity $(BUILD) $(foreach f,$(FAMILIES),$(f): $(filter-out $(alone),$(sources_$(f))))) \
  $(alone),$(foreach f,$(FAMILIES),$(sources_$(f))))
# objects_of FAMILY...: the objects of groups, and of sources that are compiled alone.
objects_of = $(call object,$(filter $(foreach f,$(1),unity/$(f)-% $(sources_$(f))),$(UNITS)))
EASY_OBJECTS := $(call objects_of,easy)
LIGHT_OBJECTS := $(call objects_of,tools easy) $(BUILD)/obj/share/probe/zs_probe/native.o
HEAVY_OBJECTS := $(call objects_of,train)
LIGHT_TESTS := $(call objects_of,tests-tools)
HEAVY_TESTS := $(call objects_of,tests-train)

# demo and check build with every processor, unless make was given its own -j.
PARALLEL = $(if $(findstring jobserver,$(MAKEFLAGS)),,-j$(JOBS))

# make checks first whether LibTorch suits, and then builds what takes longest: the GPU's library and the engine.
all: $(BUILD)/libtorch $(if $(WITH_CUDA),$(BUILD)/libzs-cuda.so) $(BUILD)/engine $(TOOLS:%=$(BUILD)/%) $(BUILD)/blas  ## build every tool into build/
	@echo 'zs-train and zs-verify are built $(if $(WITH_CUDA),with CUDA$(comma) for GPUs of sm $(strip $(SM)),without CUDA: $(WITHOUT_CUDA))'
light: $(LIGHT_TOOLS:%=$(BUILD)/%)  ## build the tools that need neither LibTorch nor MPI

$(BUILD)/libzs.a: $(LIGHT_OBJECTS)
$(BUILD)/libzs-train.a: $(HEAVY_OBJECTS)
$(BUILD)/%.a: $(BUILD)/%.members
	rm -f $@ && ar rcs $@ $(filter %.o,$^)

# Which objects an archive has: it is made again when one goes, or others take their place, but not when make is given another
# name of the build folder.
$(BUILD)/libzs.members: MEMBERS = $(LIGHT_OBJECTS:$(BUILD)/%=%)
$(BUILD)/libzs-train.members: MEMBERS = $(HEAVY_OBJECTS:$(BUILD)/%=%)
$(BUILD)/%.members: FORCE
	@mkdir -p $(@D); echo '$(MEMBERS)' | cmp -s - $@ || echo '$(MEMBERS)' > $@

GPU_OBJECTS := $(call object,$(filter %.cpp,$(gpu_sources)))
$(GPU_OBJECTS): private EXTRA = $(CUDA_CFLAGS)
$(GPU_OBJECTS): | $(SHARED_PCH).gch
$(HEAVY_OBJECTS) $(HEAVY_TESTS) $(GPU_OBJECTS) $(call object,tools/engine.cpp $(wildcard tests/mpi/*.cpp bench/*.cpp)): $(BUILD)/obj/%.o: %.cpp $(PCH).gch
	@mkdir -p $(@D)
	$(CXX) $(HEAVY_FLAGS) $(or $(FLAGS_$<),-include $(if $(EXTRA),$(SHARED_PCH) $(EXTRA),$(PCH))) -MMD -MP -c $< -o $@

$(BUILD)/obj/%.cu.o: %.cu
	@mkdir -p $(@D)
	$(NVCC) $(NVCC_FLAGS) $(if $(findstring lib/engine/device/,$<),-fmad=false) -MMD -MP -c $< -o $@

$(BUILD)/obj/lib/engine/model/models.o: lib/engine/model/models.json
$(BUILD)/obj/lib/pages/report/assets.o: $(foreach e,css js html,$(wildcard lib/pages/report/*.$(e)))

# What is linked stands beside its place until it is whole: a program that starts meanwhile is the one before.
ATOMICALLY = $(LINKER) -o $@.new && mv $@.new $@
$(BUILD)/libzs-cuda.so: $(call object,$(gpu_sources))
	$(CXX) -shared $^ $(CUDA_LIBS) $(ATOMICALLY)

# zs_probe's measures, which zs-train takes too; no bit of them depends on the machine.
NATIVE_FLAGS := -O3 -ffp-contract=off -DZS_PORTABLE -pthread -w -Wno-psabi
$(BUILD)/obj/%.o: %.c
	@mkdir -p $(@D)
	$(CC) $(NATIVE_FLAGS) -MMD -MP -c $< -o $@

$(LIGHT_TESTS): $(BUILD)/obj/%.o: %.cpp $(TEST_PCH).gch
	@mkdir -p $(@D)
	$(CXX) $(COMMON) $(TEST_OPT) -include $(TEST_PCH) -MMD -MP -c $< -o $@

EASY_OBJECTS += $(TOOLS:%=$(BUILD)/obj/tools/%.o)
$(EASY_OBJECTS) $(EASY_PCH).gch: private LEVEL = $(if $(filter -O2,$(OPT)),-O1)
$(EASY_OBJECTS): | $(EASY_PCH).gch
$(BUILD)/obj/%.o: %.cpp $(LIGHT_PCH).gch
	@mkdir -p $(@D)
	$(CXX) $(COMMON) $(LEVEL) $(or $(FLAGS_$<),-include $(if $(LEVEL),$(EASY_PCH),$(LIGHT_PCH))) -MMD -MP -c $< -o $@

$(SHARED_PCH).gch: private EXTRA = -fPIC
$(PCH).gch $(SHARED_PCH).gch: lib/engine/unit/tensor.hpp $(BUILD)/libtorch
	@mkdir -p $(@D)
	@cp $< $(@:.gch=)
	$(CXX) $(HEAVY_FLAGS) $(EXTRA) -MMD -MP -x c++-header $< -o $@

$(LIGHT_PCH).gch $(EASY_PCH).gch: lib/foundation/base/standard.hpp
	@mkdir -p $(@D)
	@cp $< $(@:.gch=)
	$(CXX) $(COMMON) $(LEVEL) -MMD -MP -x c++-header $< -o $@

$(TEST_PCH).gch: tests/doctest.hpp
	@mkdir -p $(@D)
	@cp $< $(TEST_PCH)
	$(CXX) $(COMMON) $(TEST_OPT) -MMD -MP -x c++-header $< -o $@

# Which LibTorch it is: what includes it is built again when that changes, after a look whether it suits.
$(BUILD)/libtorch: FORCE
	@mkdir -p $(@D)
	@share/libtorch identity '$(TORCH_HOME)' | cmp -s - $@ || { \
	  share/libtorch check '$(TORCH_HOME)' && share/libtorch identity '$(TORCH_HOME)' > $@; }

# How fast it multiplies is measured once.
$(BUILD)/blas: $(BUILD)/bench/product $(BUILD)/libtorch
	@share/blas $< && touch $@

# The version is one object, rebuilt when it changes.
$(BUILD)/version: FORCE
	@mkdir -p $(@D); echo '$(VERSION)' | cmp -s - $@ || echo '$(VERSION)' > $@
$(BUILD)/obj/lib/foundation/cli/version.o: $(BUILD)/version

$(TOOLS:%=$(BUILD)/%): $(BUILD)/%: $(BUILD)/obj/tools/%.o $(BUILD)/libzs.a
	$(CXX) $< -L$(BUILD) -lzs $(LIGHT_LIBS) $(ATOMICALLY)

# A page needs a tool, but not what it starts.
$(if $(filter-out man,$(or $(MAKECMDGOALS),all)),$(HEAVY_TOOLS:%=$(BUILD)/%): $(BUILD)/engine)
$(BUILD)/installed/engine: HOME_RPATH =
$(BUILD)/engine $(BUILD)/installed/engine: $(BUILD)/obj/tools/engine.o $(IN_PLACE) $(BUILD)/libzs-train.a $(BUILD)/libzs.a
	@mkdir -p $(@D)
	$(CXX) -rdynamic $< $(HEAVY_LIBS) $(ATOMICALLY)
INSTALLED := $(BUILD)/$(if $(CACHED),installed/)engine

$(MPI_TESTS) $(BENCHES): $(IN_PLACE) $(BUILD)/libzs-train.a $(BUILD)/libzs.a
# A program that loads libzs-cuda.so offers it all that zs-train does.
$(BUILD)/bench/scatter $(BUILD)/bench/kernels $(BUILD)/mpi/digests: WHOLE = -rdynamic -Wl,--whole-archive -lzs-train -Wl,--no-whole-archive
$(BUILD)/mpi/%: $(BUILD)/obj/tests/mpi/%.o
	@mkdir -p $(@D)
	$(CXX) $< $(HEAVY_LIBS) $(ATOMICALLY)
$(BUILD)/bench/%: $(BUILD)/obj/bench/%.o
	@mkdir -p $(@D)
	$(CXX) $< $(HEAVY_LIBS) $(ATOMICALLY)

# ---- tests ----------------------------------------------------------------------------------------------------------
# The library comes first and whole: of a template that both instantiate the linker keeps the first, which is not that of -O0.
$(BUILD)/test-light: $(BUILD)/obj/tests/doctest_main.o $(LIGHT_TESTS) $(BUILD)/libzs.a
	$(CXX) $(PLANTED) -Wl,--whole-archive $(BUILD)/libzs.a -Wl,--no-whole-archive $(filter %.o,$^) $(LIGHT_LIBS) $(ATOMICALLY)
$(BUILD)/test-train: $(BUILD)/obj/tests/doctest_main.o $(HEAVY_TESTS) $(IN_PLACE) $(BUILD)/libzs-train.a $(BUILD)/libzs.a
	$(CXX) $(filter-out $(IN_PLACE),$(filter %.o,$^)) $(HEAVY_LIBS) $(ATOMICALLY)

# A loaded engine for tests, and its client.
WARM := $(BUILD)/warm/warm.so $(BUILD)/warm/engine
$(BUILD)/warm/warm.so: private WAY := -shared -fPIC -DZS_SERVER
$(BUILD)/warm/engine: private WAY := -static
$(WARM): tests/warm/engine.cpp
	@mkdir -p $(@D)
	$(CXX) -std=c++20 -O1 -Wall -Wextra -Werror $(WAY) $< $(ATOMICALLY)

check:  ## install what is missing, build, pass every test
	@$(MAKE) --no-print-directory deps
	@$(MAKE) $(PARALLEL) all tests
	@BUILD=$(BUILD) tests/run

check-matrix: all $(BUILD)/mpi/digests  ## every stage, schedule, rank count and clipping on real ranks: one digest (hours)
	@BUILD=$(BUILD) tests/matrix

check-sanitized:  ## unit tests and cases of the light tools under the address and undefined-behaviour sanitizers
	@$(MAKE) $(PARALLEL) BUILD=$(BUILD)/sanitized OPT=-O1 WARN=-Wall \
	  CXX="$(CXX) -fsanitize=address,undefined -fno-sanitize-recover=all" light $(BUILD)/sanitized/test-light
	@BUILD=$(BUILD)/sanitized LSAN_OPTIONS=suppressions=$(CURDIR)/tests/leaks:print_suppressions=0 tests/run light cases

check-kills: all  ## kill trainings with -9, KILLS (100) times, and resume them: one digest, no broken checkpoint (minutes)
	@BUILD=$(BUILD) tests/kills $(KILLS)

check-storm: light  ## RUNS (11500) runs by 64 processes at once, some killed: none lost, none twice (minutes)
	@PATH=$$(realpath $(BUILD)):$$PATH tests/storm 64 $(RUNS)

check-attack: all tests  ## attack zs again with all that once broke it (minutes; make check has each of these too)
	@BUILD=$(BUILD) tests/attack

check-public: all  ## real logs, tables, traces and configurations of ../shared/public beside their right answers (seconds)
	@BUILD=$(BUILD) tests/public
check-revisions: all  ## 20 comparisons of this revision with itself, for real (minutes; on an idle machine)
	@BUILD=$(BUILD) tests/same-revision

check-peers: all  ## compare with the Python packages that zs stands in for, which it gets from PyPI (minutes)
	@for peer in tests/peers/*; do [ ! -x $$peer ] || BUILD=$(BUILD) PEERS=$(PEERS) $$peer || exit 1; done
	@BUILD=$(BUILD) tests/checkpoints/read

check-bugs: all  ## train with the silent bugs that DeepSpeed, transformers, Accelerate, Megatron and torchtitan released, which it gets from PyPI, and under layouts: zs-verify is to name each; DeepSpeed and FSDP go on from what zs-checkpoint converts (an hour and a half)
	@BUILD=$(BUILD) tests/bugs/run
	@BUILD=$(BUILD) tests/bugs/layouts
	@BUILD=$(BUILD) tests/bugs/muon
	@BUILD=$(BUILD) tests/bugs/resume
	@BUILD=$(BUILD) tests/checkpoints/run
	@BUILD=$(BUILD) tests/checkpoints/continued

check-trainers: all  ## a day with DeepSpeed, FSDP2, DDP and the Trainer, which it gets from PyPI, on a sandbox of Slurm, and the wheel beside PyTorch (half an hour)
	@BUILD=$(BUILD) tests/trainers/run

check-planted: all  ## plant faults into trainings of PyTorch and DeepSpeed, which zs-verify must name, and into models, which tests must find; compare healthy pairs (two hours)
	@BUILD=$(BUILD) tests/planted/run
	@BUILD=$(BUILD) DRAWN="$(or $(SEED),1) 375 125" tests/planted/run
	@BUILD=$(BUILD) tests/planted/model
	@BUILD=$(BUILD) bats tests/planted

check-gpu: all $(BUILD)/bench/kernels $(BUILD)/mpi/digests  ## what needs a GPU, on this machine's GPUs: one digest an arithmetic, checkpoints, a stopped rank (minutes)
	@BUILD=$(BUILD) tests/gpu

check-slurm: all  ## whole workflows on a throwaway Slurm cluster: sweeps, kills, 20 preemptions (20 minutes)
	@BUILD=$(BUILD) bats --print-output-on-failure tests/slurm

# The compiler checks the benches, which then keep up with what they measure. make bench makes programs of them.
CHECKED := $(patsubst %,%.checked,$(filter-out %/product,$(BENCHES)))
tests: $(BUILD)/test-train $(BUILD)/test-light $(MPI_TESTS) $(WARM) $(CHECKED)
$(CHECKED): $(BUILD)/%.checked: %.cpp $(PCH).gch
	@mkdir -p $(@D)
	$(CXX) $(HEAVY_FLAGS) -include $(PCH) -MMD -MP -MF $@.d -MT $@ -fsyntax-only $< && touch $@
expect:  ## rewrite the expected outputs of tests/cases; review with git diff
	@BUILD=$(BUILD) tests/cases/run --rewrite
lint:  ## clang-format and shellcheck over the sources
	@tests/lint

# ---- for people -----------------------------------------------------------------------------------------------------
deps:  ## install the Debian packages that are missing (sudo when not root), fetch LibTorch
	@TORCH='$(TORCH)' TORCH_HOME='$(chosen_home)' CUDA='$(CUDA)' share/deps
demo:  ## install, build, run the six conditions, write the report (minutes), say what to try next
	@$(MAKE) --no-print-directory deps
	@$(MAKE) $(PARALLEL) all
	@BUILD=$(BUILD) share/demo
demo-logs: light  ## write the report of six short logs that come with zs (seconds; no training, no LibTorch)
	@mkdir -p results/demo_logs && cp share/logs/* results/demo_logs && $(BUILD)/zs-report results/demo_logs
bench: all $(BENCHES)  ## print speed ratios against peers, side by side
	@BUILD=$(BUILD) bench/run
bench-peers:  ## get the PyTorch that bench/train measures against (5 GB, into a Python environment in the cache)
	@PEERS=$(PEERS) bash -euc 'source tests/peers/environment.bash'
fuzz:  ## feed mutated files to the readers, FUZZ_SECONDS (600) each
	@for f in tests/fuzz/*_fuzz.cpp; do n=$${f##*/}; tests/fuzz/run $${n%_fuzz.cpp} $(FUZZ_SECONDS) || exit 1; done
man: $(TOOLS:%=$(BUILD)/%)  ## make the man pages from the option tables and man/*.prose
	@for t in $(TOOLS); do $(BUILD)/$$t --man man/$$t.prose > $(BUILD)/page && cp $(BUILD)/page man/$$t.1 || exit 1; done
install: all $(INSTALLED)  ## put binaries, man pages, completions and share/ under PREFIX
	install -d "$(TO)"/bin "$(TO)"/share/{zs,man/man{1,5,7},bash-completion/completions}
	install $(TOOLS:%=$(BUILD)/%) "$(TO)"/bin
	install -D -t "$(TO)"/lib/zs $(INSTALLED)
	for section in 1 5 7; do install -m 644 man/*.$$section "$(TO)"/share/man/man$$section || exit; done
	cp -r share/. slurm "$(TO)"/share/zs && rm -rf "$(TO)"/share/zs/probe/zs_probe/__pycache__
	$(if $(CACHED_LIBS),install -D -t "$(TO)"/lib/zs $(CACHED_LIBS))
	$(if $(WITH_CUDA),install -D -t "$(TO)"/lib/zs $(BUILD)/libzs-cuda.so)
	for t in $(TOOLS); do $(BUILD)/$$t --completion > "$(TO)"/share/bash-completion/completions/$$t || exit; done
	@echo "installed in $(TO). Next: module use $(PREFIX)/share/zs/modulefiles; module load zs. Or: export PATH=$(PREFIX)/bin:\$$PATH"
deb: all $(INSTALLED)  ## make build/deb/zs_*.deb and zs-train_*.deb of what is built, for Debian 12 (apt-get install debhelper)
	@command -v dh >/dev/null || { echo "make deb: needs debhelper: apt-get install debhelper" >&2; exit 2; }
	@rm -rf $(BUILD)/deb && mkdir -p $(BUILD)/deb/tree && cp -r debian $(BUILD)/deb/tree
	@printf 'zs (%s) bookworm; urgency=medium\n\n  * Of revision %s.\n\n -- %s  %s\n' "$(DEB_VERSION)" "$(VERSION)" \
	  "$$(sed -n 's/^Maintainer: //p' debian/control)" "$$(LC_ALL=C date -R)" > $(BUILD)/deb/tree/debian/changelog
	@cd $(BUILD)/deb/tree && SOURCE=$(CURDIR) BUILD=$(BUILD) LICENCE='$(wildcard $(if $(CACHED),$(dir $(TORCH_HOME))torch-*.dist-info/licenses/LICENSE))' \
	  debian/rules binary
	@rm -rf $(BUILD)/deb/tree && ls -sh $(BUILD)/deb
check-package: deb  ## the packages under lintian and in a bare Debian 12, with the module file and the container's recipe (minutes; root)
	@BUILD=$(BUILD) tests/package
# As ruff and cmake ship theirs: programs, with the libraries that they need, in a wheel. RPATH, so that it holds for those too.
$(BUILD)/wheel/bin/%: $(BUILD)/obj/tools/%.o $(BUILD)/libzs.a
	@mkdir -p $(@D)
	$(CXX) -s $< -L$(BUILD) -lzs -Wl,--disable-new-dtags,-rpath,'$$ORIGIN/../lib/zs' $(LIGHT_LIBS) $(ATOMICALLY)
$(BUILD)/wheel/libnative.so: share/probe/zs_probe/native.c
	@mkdir -p $(@D)
	$(CC) $(NATIVE_FLAGS) -shared -fPIC -s $< $(ATOMICALLY)
WHEEL_VERSION = $(shell git log -1 --date=format:0.%Y%m%d.1%H%M --format=%cd+g%h 2>/dev/null || echo 0)
wheel: $(LIGHT_TOOLS:%=$(BUILD)/wheel/bin/%) $(BUILD)/wheel/libnative.so  ## make build/wheel/zero_suite-*.whl: the tools without LibTorch, their pages, the probe; pip installs it
	@rm -f $(BUILD)/wheel/*.whl
	@share/wheel $(BUILD)/wheel/bin $(BUILD)/wheel/libnative.so $(BUILD)/wheel $(WHEEL_VERSION) $(wildcard $(LIGHT_TOOLS:%=man/%.1) man/*.5 man/*.7)
check-wheel: wheel  ## the wheel in an empty environment of Python (no other package)
	@BUILD=$(BUILD) bats tests/wheel.bats
clean:  ## remove what was built
	rm -rf $(BUILD)
help:  ## list the targets
	@sed -nE 's/^([a-z-]+):.*## (.*)/  make \1\t\2/p' Makefile | expand -t 20

# For scripts: which tools are light, and how a source is compiled (tests/libtorch.bats).
light-tools:
	@echo $(LIGHT_TOOLS)
heavy-tools:
	@echo $(HEAVY_TOOLS)
flags:
	@echo $(filter-out $(COLLECT),$(HEAVY_FLAGS))

.PHONY: all light check check-attack check-bugs check-planted check-public check-gpu check-matrix check-peers check-revisions check-slurm check-trainers check-wheel check-kills check-storm check-sanitized tests expect lint deps demo demo-logs bench bench-peers fuzz man install clean help light-tools heavy-tools deb wheel check-package flags FORCE
.SECONDARY:
-include $(shell find $(BUILD) -name '*.d' 2>/dev/null)
