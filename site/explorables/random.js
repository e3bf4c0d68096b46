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

/** One number of the normal distribution with mean 0 and standard deviation 1 (Box and Muller). */
export function normal(random) {
  const radius = Math.sqrt(-2 * Math.log(1 - random())); // 1 − u is never 0
  return radius * Math.cos(2 * Math.PI * random());
}

/** Shuffle an array in place (Fisher and Yates), and return it. */
export function shuffle(array, random) {
  for (let last = array.length - 1; last > 0; last--) {
    const other = Math.floor(random() * (last + 1));
    [array[last], array[other]] = [array[other], array[last]];
  }
  return array;
}
