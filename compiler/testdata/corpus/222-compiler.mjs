export default function () {
return (x => ({ y: x + 1 }))(2).y + (x => (x, x + 1))(3)
}
