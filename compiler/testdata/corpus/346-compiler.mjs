export default function () {
const tag = (s, ...v) => s.raw.join("|") + ":" + v.join() + ":" + s.length; return [tag`a${1}\n${2}b`, tag``, ((s) => s)`x` === ((s) => s)`x`]
}
