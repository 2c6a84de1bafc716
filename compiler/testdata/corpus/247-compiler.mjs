export default function () {
return [0x10 + 0b11 + 0o17, 1_000 + 1, .5 + 5., 1e3 - 1, 10n ** 3n > 5n, (7n / 2n).toString()]
}
