export default function () {
return [null ?? 1, 0 ?? 1, undefined ?? null ?? 2, 0 || "x", "" && "y", 1 && 2]
}
