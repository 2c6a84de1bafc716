package rowset

import "math"

// HashInt returns 64 random-looking bits of an integer and a seed: the same on every machine and in every version. It is
// mix(mix(seed) XOR v), where mix(x) is the output of SplitMix64 in state x (Steele, Lea, Flood: Fast splittable pseudorandom number
// generators, OOPSLA 2014).
func HashInt(v, seed int64) uint64 { return mix64(mix64(uint64(seed)) ^ uint64(v)) }

// HashText is HashInt of a text's TextBits.
func HashText(text string, seed int64) uint64 { return HashInt(TextBits(text), seed) }

// TextBits returns the integer that represents a text in a hash: the 64-bit FNV-1a hash of its bytes.
func TextBits(text string) int64 {
	h := uint64(0xcbf29ce484222325)
	for i := range len(text) {
		h = (h ^ uint64(text[i])) * 0x100000001b3
	}
	return int64(h)
}

// NumberBits returns the integer that represents a double in a hash: the same number if it is an integer of 64 bits,
// and otherwise its bits.
func NumberBits(x float64) int64 {
	if x == math.Trunc(x) && x >= -1<<63 && x < 1<<63 {
		return int64(x)
	}
	return int64(math.Float64bits(x))
}

// HashUnit returns the upper 53 bits of a hash as a double from 0 to below 1, a multiple of 2^-53.
func HashUnit(h uint64) float64 { return float64(h>>11) * 0x1p-53 }

func mix64(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
