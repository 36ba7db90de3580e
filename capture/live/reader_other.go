//go:build !linux

package live

// Open returns ErrUnsupported.
func Open(Options) (Source, error) { return nil, ErrUnsupported }
