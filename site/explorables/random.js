// The package's random numbers, per_tutorial/replay/random_streams.py: SplitMix64.

const GOLDEN_GAMMA = 0x9e3779b97f4a7c15n;
const MIX_1 = 0xbf58476d1ce4e5b9n;
const MIX_2 = 0x94d049bb133111ebn;
const bits64 = (number) => BigInt.asUintN(64, number);

/** A function that returns the next number in [0, 1) at every call. `state`: an integer, 64 bits. */
export function stream(state) {
  let now = bits64(BigInt(state));
  return () => {
    now = bits64(now + GOLDEN_GAMMA);
    let bits = now;
    bits = bits64((bits ^ (bits >> 30n)) * MIX_1);
    bits = bits64((bits ^ (bits >> 27n)) * MIX_2);
    bits ^= bits >> 31n;
    return Number(bits >> 11n) * 2 ** -53;
  };
}
