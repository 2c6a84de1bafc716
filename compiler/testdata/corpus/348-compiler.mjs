export default function () {
return [..."aXbX".matchAll(/([a-z])(X)/g)].map((m) => [m[0], m[1], m.index])
}
