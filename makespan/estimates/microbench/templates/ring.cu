// A ring of addresses, `bytes` long; lane l takes every 32nd from the l-th on if `lanes` is 32.
static void latency(const char *name, bool first_cache, size_t bytes, size_t line, int lanes, u64 *clocks, size_t flush)
{
    size_t count = bytes / line / lanes * lanes;
    char *ring = device<char>(count * line), *other = device<char>(flush);
    u64 *starts = device<u64>(32), *out = device<u64>(32);
    std::vector<char> host(count * line);
    for (size_t i = 0; i < count; ++i)
        *(u64 *)&host[i * line] = (u64)(ring + (i + lanes) % count * line);
    check(cudaMemcpy(ring, host.data(), host.size(), cudaMemcpyHostToDevice), "cudaMemcpy");
    u64 begin[32];
    for (int lane = 0; lane < 32; ++lane)
        begin[lane] = (u64)(ring + lane % lanes * line);
    check(cudaMemcpy(starts, begin, sizeof begin, cudaMemcpyHostToDevice), "cudaMemcpy");
    for (unsigned steps : {$steps})
        for (int repeat = 0; repeat < REPEATS; ++repeat) {
            check(cudaMemset(other, repeat, flush), "cudaMemset");
            auto kernel = first_cache ? walk_ca : walk_cg;
            kernel<<<1, 32>>>(clocks, out, starts, steps);
            check(cudaDeviceSynchronize(), name);
            u64 both[2];
            check(cudaMemcpy(both, clocks, sizeof both, cudaMemcpyDeviceToHost), "cudaMemcpy");
            row("memory", name, steps, (double)(both[1] - both[0]));
        }
    for (void *pointer : {(void *)ring, (void *)other, (void *)starts, (void *)out})
        check(cudaFree(pointer), "cudaFree");
}
