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

# Adds every .cu below the room to its library, and the runtime it needs.
function(saccade_cuda target)
  if(NOT SACCADE_HAS_CUDA)
    return()
  endif()
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/kernels/*.cu ${CMAKE_SOURCE_DIR}/kernels/*.cuh)
  target_sources(${target} PRIVATE ${sources})
  target_compile_definitions(${target} PUBLIC SACCADE_CUDA)
  # CMake 3.25 does not know that nvcc speaks C++20.
  target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:CUDA>:-std=c++20 --expt-relaxed-constexpr -lineinfo -Xcompiler=-Wall,-Wextra>)
  # The runtime is linked in; cuBLASLt is loaded when a GPU is used (kernels/cuda/cublas.cpp).
  target_link_libraries(${target} PUBLIC CUDA::cudart_static ${CMAKE_DL_LIBS})
endfunction()
