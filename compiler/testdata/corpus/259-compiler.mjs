export default function () {
return [..."ab", ...[1 + 1]].concat([..."cd"].map((c) => c + c))
}
