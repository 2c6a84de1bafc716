package respfront

import (
	"github.com/rankd/rankd/internal/version"
	"github.com/rankd/rankd/serve/session"
)

// DefaultMaxArguments is the default of Options.MaxArguments.
const DefaultMaxArguments = 1024

// Options bound a front. A field that is zero means its default. A request is one command with its arguments. Immutable once given to New.
type Options struct {
	session.Options
	// MaxArguments bounds the arguments of one command, its name among them.
	MaxArguments int
	// Version is rankd's version in INFO. Empty means the one that the build has recorded.
	Version string
}

func (o Options) withDefaults() Options {
	o.Options = o.Options.WithDefaults()
	if o.MaxArguments <= 0 {
		o.MaxArguments = DefaultMaxArguments
	}
	if o.Version == "" {
		o.Version = version.Read().Module
	}
	return o
}
