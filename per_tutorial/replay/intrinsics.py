"""Two operations that numba lacks: copying blocks of memory, and prefetching."""

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic, overload
from numpy.typing import NDArray


def copy_bytes(source: NDArray, start: int, target: NDArray, target_start: int, count: int) -> None:
    """Copy `count` bytes between uint8 arrays of one axis, which do not overlap.

    For frames a plain loop takes up to twice the time: it reads what it is about to overwrite.
    Compiled, this is as fast as the C library's copy, without bounds checks.
    """
    target[target_start : target_start + count] = source[start : start + count]


@overload(copy_bytes)
def _copy_bytes(source, start, target, target_start, count):
    return lambda source, start, target, target_start, count: _copy_compiled(
        source, start, target, target_start, count
    )


@intrinsic
def _copy_compiled(typing_context, source, start, target, target_start, count):
    def generate(context, builder, signature, arguments):
        source, start, target, target_start, count = arguments
        kinds = signature.args[0], signature.args[2]
        read, written = (
            builder.gep(context.make_array(kind)(context, builder, array).data, [first])
            for kind, array, first in zip(
                kinds, (source, target), (start, target_start), strict=True
            )
        )
        cgutils.raw_memcpy(builder, written, read, count, ir.Constant(count.type, 1))
        return context.get_dummy_value()

    return types.void(source, start, target, target_start, count), generate


def prefetch(array: NDArray, index: int) -> None:
    """Ask the processor to load ``array[index]`` (one axis) into its cache, without waiting.

    A read that misses the cache stalls what follows, so only a few run at once; many prefetches do.
    Batched walks through large trees take half the time with them. An index outside the array is
    allowed and has no effect. Uncompiled, the function does nothing.
    """


@overload(prefetch)
def _prefetch(array, index):
    return lambda array, index: _prefetch_compiled(array, index)


@intrinsic
def _prefetch_compiled(typing_context, array, index):
    def generate(context, builder, signature, arguments):
        elements = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        pointer, integer = ir.IntType(8).as_pointer(), ir.IntType(32)
        address = builder.bitcast(builder.gep(elements, [arguments[1]]), pointer)
        function = ir.FunctionType(ir.VoidType(), [pointer, integer, integer, integer])
        instruction = builder.module.declare_intrinsic("llvm.prefetch", (pointer,), function)
        to_read, keep_in_all_caches, data = integer(0), integer(3), integer(1)
        builder.call(instruction, [address, to_read, keep_in_all_caches, data])
        return context.get_dummy_value()

    return types.void(array, index), generate
