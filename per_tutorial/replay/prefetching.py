"""Fetching memory ahead of its use, from compiled code."""

from llvmlite import ir
from numba import types
from numba.extending import intrinsic, overload
from numpy.typing import NDArray


def prefetch(array: NDArray, index: int) -> None:
    """Ask the processor to bring ``array[index]`` (one axis) into its cache; nobody waits for it.

    A read that misses the cache holds up what comes after it, and only a few of them are under way
    at once. Prefetches are many at once: batched walks through large trees take half the time with
    them. Any index is allowed: one outside of the array has no effect. Uncompiled, it does nothing.
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
