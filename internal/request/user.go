package request

import (
	"fmt"
	"unicode/utf8"

	"github.com/rankd/rankd/internal/errtext"
	"github.com/rankd/rankd/internal/jsondoc"
	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/rowset"
)

// UserID names a user by an integer. If the registry's entity of users has text ids, UserIDText names the user.

// SetUserID reads the user from text, such as an argument of a command. It takes the same strings as "user_id" of a
// document. The error is an *Error without a RequestID.
func (g *Given) SetUserID(text []byte, reg *registry.Registry) error {
	if reg.User().TextIDs() {
		if !validUserText(string(text)) {
			return &Error{Code: CodeInvalid, Detail: badUserText(errtext.Quote(string(text))), Offset: -1}
		}
		g.UserIDText = string(text)
		return nil
	}
	id, ok := decimalID(text)
	if !ok {
		return &Error{Code: CodeInvalid, Detail: badDecimal(string(text)), Offset: -1}
	}
	g.UserID = id
	return nil
}

// hasUser reports whether the user is known.
func (g *Given) hasUser() bool { return g.UserID != 0 || g.UserIDText != "" }

// userID reads the member of that name.
func (r *reading) userID(v *jsondoc.Value) *Error {
	if r.registry.User().TextIDs() {
		return r.userIDText(v)
	}
	switch v.Kind {
	case jsondoc.Uint:
		if v.Uint < 1 || v.Uint > UserIDMax {
			return refuse(CodeInvalid, v, "%s", badUserID(v.Uint))
		}
		r.req.UserID = int64(v.Uint)
	case jsondoc.Int:
		return refuse(CodeInvalid, v, "%s", badUserID(v.Int))
	case jsondoc.String:
		id, ok := decimalID(v.Str)
		if !ok {
			return refuse(CodeInvalid, v, "%s", badDecimal(v.Str))
		}
		r.req.UserID = id
	case jsondoc.Float:
		if v.Float < 1 || v.Float > UserIDMax {
			// An integer literal beyond 64 bits is a Float, too, so the text does not mention literals.
			return refuse(CodeInvalid, v, "%s", badUserID("a number out of that range"))
		}
		fallthrough
	default:
		return refuse(CodeInvalid, v, "user_id must be an integer or a string of decimal digits, got %s", v.Describe())
	}
	if given := r.given.UserID; given != 0 && r.req.UserID != given {
		return refuse(CodeInvalid, v, "user_id is %d, and the request came for user %d", r.req.UserID, given)
	}
	return nil
}

func (r *reading) userIDText(v *jsondoc.Value) *Error {
	switch {
	case v.Kind != jsondoc.String:
		return refuse(CodeInvalid, v, "%s", badUserText(v.Describe()))
	case !validUserText(v.Str):
		return refuse(CodeInvalid, v, "%s", badUserText(errtext.Quote(v.Str)))
	}
	r.req.UserIDText = v.Str
	if given := r.given.UserIDText; given != "" && v.Str != given {
		return refuse(CodeInvalid, v, "user_id is %s, and the request came for user %s", errtext.Quote(v.Str), errtext.Quote(given))
	}
	return nil
}

// userFault says what is wrong with the user of a request; "": nothing.
func userFault(r *Request, reg *registry.Registry) string {
	switch text := reg.User().TextIDs(); {
	case text && r.UserID != 0:
		return badUserText(fmt.Sprint(r.UserID))
	case text && !validUserText(r.UserIDText):
		return badUserText(errtext.Quote(r.UserIDText))
	case text:
		return ""
	case r.UserIDText != "":
		return badUserID(errtext.Quote(r.UserIDText))
	case r.UserID < 1 || r.UserID > UserIDMax:
		return badUserID(r.UserID)
	}
	return ""
}

// UserIDMax is the largest user_id that a request may carry where users have integers as ids.
const UserIDMax = 1<<32 - 1

// validUserText reports whether a text may name a user. Services get it in JSON, so it is UTF-8.
func validUserText(text string) bool { return rowset.ValidID(text) && utf8.ValidString(text) }

// badUserID says what is wrong with a number that is not a user id.
func badUserID[T int64 | uint64 | string](got T) string {
	return fmt.Sprintf("user_id must be an integer from 1 to %d, got %v", int64(UserIDMax), got)
}

func badDecimal(text string) string {
	return fmt.Sprintf("user_id as a string must be decimal digits for an integer from 1 to %d, got %s", int64(UserIDMax), errtext.Quote(text))
}

// badUserText says what is wrong with a string user id.
func badUserText(got string) string {
	return fmt.Sprintf("user_id must be a string of 1 to %d bytes of UTF-8, got %s", rowset.IDBytesMax, got)
}

// decimalID reads a user id from ASCII digits, with any number of leading zeros.
func decimalID[T string | []byte](s T) (int64, bool) {
	var id int64
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return 0, false
		}
		if id = id*10 + int64(s[i]-'0'); id > UserIDMax {
			return 0, false
		}
	}
	return id, id > 0
}
