package run

import (
	"cmp"
	"context"
	"fmt"

	"github.com/rpcrdma/toolkit/replay/client"
	"github.com/rpcrdma/toolkit/replay/guard"
	"github.com/rpcrdma/toolkit/replay/internal/bindings"
	"github.com/rpcrdma/toolkit/replay/internal/prepare"
)

// access makes the client that finds the directory and makes the files. The returned function
// releases the client's state on the server and closes its connections.
//
// All its calls go through g. name is its name as an NFSv4 client.
func (e *engine) access(ctx context.Context, g *guard.Guard, name string) (client.FS, func(ctx context.Context), error) {
	return e.accessBy(ctx, e.opt.Access, g, name)
}

func (e *engine) accessBy(ctx context.Context, open func(context.Context) (*Access, error), g *guard.Guard, name string) (client.FS, func(ctx context.Context), error) {
	a, err := open(ctx)
	if err != nil {
		return nil, nil, err
	}
	hangUp := func() {
		_ = a.NFS.Close()
		if a.Mount != nil {
			_ = a.Mount.Close()
		}
	}
	rpc := client.RPC{Requester: g.Requester(a.NFS), Cred: a.Cred}
	var fs client.FS
	if a.Version == "3" {
		v := client.NewV3(rpc)
		if a.Mount != nil {
			v.Mount = &client.RPC{Requester: g.Requester(a.Mount), Cred: a.Cred}
		}
		fs = v
	} else if fs, err = e.access4(ctx, rpc, a.Version, name); err != nil {
		hangUp()
		return nil, nil, err
	}
	return fs, func(ctx context.Context) {
		_ = fs.Shutdown(ctx)
		hangUp()
	}, nil
}

func (e *engine) access4(ctx context.Context, rpc client.RPC, version, name string) (client.FS, error) {
	minor, ok := map[string]uint32{"4.0": 0, "4.1": 1, "4.2": 2}[version]
	if !ok {
		return nil, fmt.Errorf("version %q of NFS is not known: it is 3, 4.0, 4.1 or 4.2", version)
	}
	return client.NewV4(ctx, rpc, client.V4Options{Minor: minor, Owner: append(bindings.OwnerPrefix(e.opt.Tag), name...)})
}

// apart finds the handles of NFSv3 for the clones.
func (e *engine) apart(ctx context.Context) error {
	if e.opt.Access3 == nil || !e.load.Mixed() {
		return nil
	}
	fs, end, err := e.accessBy(ctx, e.opt.Access3, e.guard, "")
	if err == nil {
		defer end(context.WithoutCancel(ctx))
		err = prepare.Apart(ctx, fs, e.load, e.clones, prepare.Options{Directory: cmp.Or(e.opt.Directory3, e.opt.Directory), Shared: e.opt.Shared, Round: e.round, Guard: e.guard, Note: e.record.Note})
	}
	switch {
	case err == nil:
		return nil
	case e.opt.Incomplete:
		e.record.Note("calls of NFSv3 have the handles of NFSv4, since none could be found by NFSv3: %v", err)
		return nil
	}
	return fmt.Errorf("what the plan's calls of NFSv3 need is not found by NFSv3 (--dir3 has the path that NFSv3 knows, --incomplete goes on): %w", err)
}
