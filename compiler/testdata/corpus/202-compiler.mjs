export default function () {
return ((1 + (2))) * ((((3))))
}
