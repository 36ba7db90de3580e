//go:build !linux

package sandbox

// Box has no use where there is no live capture.
type Box struct{}

// Open does nothing.
func (o *Options) Open(bool) (*Box, error) { return &Box{}, nil }

// Notes are remarks on what could not be given up.
func (*Box) Notes() []string { return nil }

// As reports that the process is another user than the one that started it.
func (*Box) As() (string, bool) { return "", false }

// Explain returns the error.
func (*Box) Explain(err error) error { return err }

// Drop does nothing.
func (*Box) Drop() error { return nil }

// Confine does nothing.
func (*Box) Confine(Needs) error { return nil }
