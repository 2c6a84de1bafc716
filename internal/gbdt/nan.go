package gbdt

import "bytes"

// withoutNaN returns text with each NaN, Infinity and -Infinity outside strings replaced by an empty string and
// blanks, so that the text is JSON and offsets stay. XGBoost writes them where a number means nothing, such as the
// condition of a categorical split. Code that needs a number there refuses the string.
func withoutNaN(text []byte) []byte {
	if !bytes.Contains(text, []byte("NaN")) && !bytes.Contains(text, []byte("Infinity")) {
		return text
	}
	text = bytes.Clone(text)
	inString := false
	for i := 0; i < len(text); i++ {
		switch {
		case inString && text[i] == '\\':
			i++
		case text[i] == '"':
			inString = !inString
		case !inString:
			for _, word := range [...]string{"NaN", "-Infinity", "Infinity"} {
				if bytes.HasPrefix(text[i:], []byte(word)) {
					copy(text[i:], `""       `[:len(word)])
					i += len(word) - 1
					break
				}
			}
		}
	}
	return text
}
