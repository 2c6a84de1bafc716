export default function () {
return [5 & 3, 5 | 3, 5 ^ 3, 1 << 4, -16 >> 2, -16 >>> 28, ~5, +"5", -"5", !0, !!"x"]
}
