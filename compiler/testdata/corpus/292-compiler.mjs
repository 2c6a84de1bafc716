export default function () {
class S extends Set { add(v) { return super.add(v * 2) } } return [...new S([1, 2, 1])]
}
