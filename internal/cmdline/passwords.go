package cmdline

import (
	"regexp"
	"strings"
)

var (
	// beforeLogin matches the name of a flag and a scheme, each optional.
	beforeLogin = regexp.MustCompile(`^(-*[\w-]+=)?([A-Za-z+]+://)?`)
	// loginInText matches the same in a word of a text, and the login behind it.
	loginInText = regexp.MustCompile(`(^|[\s"])(-*[\w-]+=)?([A-Za-z+]+://)[^\s"]*@`)
	// inQuery matches the password in the query of a URL.
	inQuery = regexp.MustCompile(`([?&](?:sentinel_)?password=)[^&\s"]*`)
)

// HidePassword returns a command-line argument in which *** replaces what may be the user and password of a Redis
// server: all text before the last @, if it has a colon.
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
