# The CUDA engine is compiled when the toolkit is found (AUTO), always (ON) or never (OFF).
set(SACCADE_HAS_CUDA OFF)
if(NOT SACCADE_CUDA STREQUAL "OFF")
  include(CheckLanguage)
  check_language(CUDA)
  if(CMAKE_CUDA_COMPILER)
    # Tensor cores in bf16 start at 8.0; Hopper gets code of its own. Newer GPUs take the 8.0 PTX.
    if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
      set(CMAKE_CUDA_ARCHITECTURES 80 90a-real)
    endif()
    enable_language(CUDA)
    find_package(CUDAToolkit 12.4 REQUIRED)
    set(SACCADE_HAS_CUDA ON)
  elseif(SACCADE_CUDA STREQUAL "ON")
    message(FATAL_ERROR "SACCADE_CUDA is ON, but there is no CUDA compiler (nvcc); install the CUDA Toolkit or set it to AUTO")
  endif()
endif()
message(STATUS "CUDA engine: ${SACCADE_HAS_CUDA}")
# cuDNN's headers are enough to build with it; the library is loaded when the program runs, if it is there.
if(SACCADE_HAS_CUDA)
  find_path(CUDNN_INCLUDE cudnn_graph.h HINTS ${CUDAToolkit_INCLUDE_DIRS})
  message(STATUS "cuDNN headers: ${CUDNN_INCLUDE}")
endif()

# Adds every .cu below the room to its library, and the runtime it needs.
function(saccade_cuda target)
  if(NOT SACCADE_HAS_CUDA)
    return()
  endif()
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/kernels/*.cu ${CMAKE_SOURCE_DIR}/kernels/*.cuh)
  target_sources(${target} PRIVATE ${sources})
  # Nothing above the room is compiled otherwise, with CUDA or without.
  target_compile_definitions(${target} PRIVATE SACCADE_CUDA)
  if(CUDNN_INCLUDE)
    target_compile_definitions(${target} PRIVATE SACCADE_CUDNN)
    target_include_directories(${target} SYSTEM PRIVATE ${CUDNN_INCLUDE})
    target_link_libraries(${target} PRIVATE ${CMAKE_DL_LIBS})
  endif()
  # CMake 3.25 does not know that nvcc speaks C++20.
  target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:CUDA>:-std=c++20 --expt-relaxed-constexpr -lineinfo -Xcompiler=-Wall,-Wextra>)
  # The runtime is linked in; cuBLASLt is loaded when a GPU is used (kernels/cuda/runtime/cublas.cpp).
  target_link_libraries(${target} PRIVATE CUDA::cudart_static ${CMAKE_DL_LIBS})
endfunction()
