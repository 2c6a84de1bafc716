export default function () {
return "ü" + "\u{1F600}" + "日本".length + "\x41"
}
