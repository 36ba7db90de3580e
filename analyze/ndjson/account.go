package ndjson

import (
	"github.com/rpcrdma/toolkit/analyze/text"
	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/rdma"
)

// AccountSchema is the value of the key "schema" of an Account.
const AccountSchema = "rpcrdma.account/1"

// Account is a decode.Account as JSON. It is documented in docs/schema.md.
type Account struct {
	Schema       string         `json:"schema"`
	Packets      uint64         `json:"packets"`
	Transactions uint64         `json:"transactions"`
	Kinds        []AccountKind  `json:"kinds"`
	Services     []AccountedFor `json:"services"`
	// Line says it in one line.
	Line string `json:"-"`
}

// AccountKind is a kind of packets; the numbers of all of them add up to those
// of the Account.
type AccountKind struct {
	Kind    string `json:"kind"`
	Tunnel  string `json:"tunnel,omitempty"`
	Port    uint16 `json:"port,omitempty"`
	Packets uint64 `json:"packets"`
	Bytes   uint64 `json:"bytes"` // on the wire
}

// AccountedFor is a service of connections that carried no RPC.
type AccountedFor struct {
	Service     string `json:"service"` // "" if its port has no name
	Fabric      string `json:"fabric"`
	Port        uint16 `json:"port,omitempty"`
	ServiceID   uint64 `json:"service_id,omitempty"`
	Connections int    `json:"connections"`
}

// NewAccount makes the JSON form of a.
func NewAccount(a *decode.Account) *Account {
	out := &Account{
		Schema: AccountSchema, Packets: a.Packets, Transactions: a.Transactions,
		Line:  string(text.Account(nil, a, 12)),
		Kinds: make([]AccountKind, len(a.Kinds)), Services: make([]AccountedFor, len(a.Services)),
	}
	for i := range a.Kinds {
		k := a.Kinds[i]
		tunnel := k.Tunnel.String()
		k.Tunnel = 0
		out.Kinds[i] = AccountKind{Kind: string(text.KindOf(nil, &k.Kind)), Tunnel: tunnel, Port: k.Port, Packets: k.Packets, Bytes: k.Bytes}
	}
	for i, s := range a.Services {
		out.Services[i] = AccountedFor{
			Service: rdma.ServiceName(s.Port), Fabric: s.Fabric.String(), Port: s.Port, ServiceID: s.ID, Connections: s.Connections,
		}
	}
	return out
}
