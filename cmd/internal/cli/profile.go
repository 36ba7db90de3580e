package cli

import (
	"runtime/pprof"

	"github.com/rpcrdma/toolkit/internal/outfile"
)

// Profile writes a CPU profile until stop is called. Without a name it does
// nothing.
func Profile(files *outfile.Files, name string) (stop func(), err error) {
	if name == "" {
		return func() {}, nil
	}
	f, err := files.Create(name)
	if err != nil {
		return nil, err
	}
	if err := pprof.StartCPUProfile(f); err != nil {
		f.Discard()
		return nil, err
	}
	return func() {
		pprof.StopCPUProfile()
		_ = f.Commit() // for developers, who will see
	}, nil
}
