"""Execution times of OpenCL kernels from a cost table that was measured once per device.

A kernel is priced by what one work-item does: operations by type, memory accesses by class, and the bytes that move to
the device and back. All times are microseconds. The result is an average with a tendency upwards; it bounds nothing.

Source of the model: A. Pöppl, Evaluation and prediction of execution times for OpenCL-based computations on GPGPU
systems, talk, TU München, 5 September 2014. Published successor: Pöppl and Herz, A Cache-Aware Performance Prediction
Framework for GPGPU Computations, Euro-Par 2015 Workshops, LNCS 9523, pp. 746-760.
"""
