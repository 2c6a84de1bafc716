export default function () {
let i = 0, j = 10; i++; ++i; j--; --j; return [i++, i, j--, j, -i, - -i, +-i]
}
