export default function () {
return [new Object("s").length, Object(1) + 1, new Array(3).length, Array(1, 2), new Array("3"), Array.of(3), Object() instanceof Object, new Boolean(false) ? 1 : 2, Boolean(""), Boolean([])]
}
