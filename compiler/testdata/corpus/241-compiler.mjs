export default function () {
return [new Array(1 + 1).length, new (class { constructor(x) { this.x = x + 1 } })(2 * 3).x, new Map([[1, 1 + 1]]).get(1)]
}
