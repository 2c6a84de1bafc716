package cmdline

import (
	"regexp"
	"strings"
)

var (
	// beforeLogin matches the name of a flag and a scheme, as far as they are there.
	beforeLogin = regexp.MustCompile(`^(-*[\w-]+=)?([A-Za-z+]+://)?`)
	// loginInText matches the same in a word of a text, and the login behind it.
	loginInText = regexp.MustCompile(`(^|[\s"])(-*[\w-]+=)?([A-Za-z+]+://)[^\s"]*@`)
	// inQuery matches the password in the query of a URL.
	inQuery = regexp.MustCompile(`([?&]password=)[^&\s"]*`)
)

// HidePassword returns an argument of a command line with what may be the user and the password of a
// Redis server replaced by ***: all before the last @, if there is a colon, too.
func HidePassword(argument string) string {
	before := beforeLogin.FindString(argument)
	if at := strings.LastIndexByte(argument, '@'); at >= len(before) && strings.Contains(argument, ":") {
		argument = before + "***" + argument[at:]
	}
	return inQuery.ReplaceAllString(argument, "$1***")
}

// HidePasswords returns a message with the users and passwords of URLs in it replaced by ***.
func HidePasswords(message string) string {
	return inQuery.ReplaceAllString(loginInText.ReplaceAllString(message, "$1$2$3***@"), "$1***")
}
