package main

import (
	"os"

	"github.com/nats-io/nats.go"
	"github.com/spf13/cobra"

	"github.com/rpcrdma/toolkit/cmd/internal/cli"
	"github.com/rpcrdma/toolkit/cmd/rpcrdma-fleet/internal/queue"
)

// natsFlags say where NATS is, for the commands that go there.
type natsFlags struct{ queue.Address }

func (n *natsFlags) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&n.Servers, "nats", "", "NATS servers, as `URL`s with commas between them (default $NATS_URL)")
	f.StringVar(&n.Creds, "nats-creds", "", "`file` with credentials of NATS (default $NATS_CREDS)")
	f.StringVar(&n.NKey, "nats-nkey", "", "`file` with the seed of an NKey (default $NATS_NKEY)")
	f.StringVar(&n.Context, "nats-context", "", "`name` of a context of the nats command (default $NATS_CONTEXT)")
	f.StringVar(&n.CA, "tls-ca", "", "`file` with the certificates that sign those of the NATS servers (default $NATS_CA)")
	f.StringVar(&n.Cert, "tls-cert", "", "`file` with the certificate to show to NATS servers (default $NATS_CERT)")
	f.StringVar(&n.Key, "tls-key", "", "`file` with its key (default $NATS_KEY)")
}

// given reports whether anything says that there is NATS.
func (n *natsFlags) given() bool {
	return n.Servers != "" || n.Context != "" || os.Getenv("NATS_URL") != "" || os.Getenv("NATS_CONTEXT") != ""
}

// dial connects. That something is missing in the flags is a mistake of the caller.
func (n *natsFlags) dial(role, name string, notes *cli.Problems) (*nats.Conn, error) {
	a, err := n.Resolve(os.Getenv)
	if err != nil {
		return nil, &cli.UsageError{Err: err}
	}
	return queue.Dial(a, role, name, notes.Printf)
}
