static void check(cudaError_t error, const char *what)
{
    if (error != cudaSuccess) {
        std::fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(error));
        std::exit(4);
    }
}

// Memory of the device, all zeros.
template <typename T> static T *device(size_t elements)
{
    void *memory;
    check(cudaMalloc(&memory, elements * sizeof(T)), "cudaMalloc");
    check(cudaMemset(memory, 0, elements * sizeof(T)), "cudaMemset");
    return static_cast<T *>(memory);
}

// Seconds of what is launched, from event to event.
template <typename Launch> static double seconds(Launch launch)
{
    cudaEvent_t first, last;
    check(cudaEventCreate(&first), "cudaEventCreate");
    check(cudaEventCreate(&last), "cudaEventCreate");
    check(cudaEventRecord(first), "cudaEventRecord");
    launch();
    check(cudaGetLastError(), "launch");
    check(cudaEventRecord(last), "cudaEventRecord");
    check(cudaEventSynchronize(last), "run");
    float milliseconds = 0;
    check(cudaEventElapsedTime(&milliseconds, first, last), "cudaEventElapsedTime");
    cudaEventDestroy(first);
    cudaEventDestroy(last);
    return milliseconds / 1e3;
}
