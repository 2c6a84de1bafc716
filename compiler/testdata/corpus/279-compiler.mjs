export default function () {
return [Math.imul(1e20, 3), Math.clz32(1e20), Math.imul(0xffffffff, 5), Math.clz32(0.5), Math.imul("3", "4"), Math.clz32()]
}
