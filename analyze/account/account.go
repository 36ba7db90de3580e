// Package account is the shape of a decoder's account of all packets, as JSON
// shows it.
package account

import (
	"github.com/rpcrdma/toolkit/analyze/text"
	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/rdma"
)

// Schema is the value of the key "schema" of an Account.
const Schema = "rpcrdma.account/1"

// Account is a decode.Account as JSON. It is documented in docs/reference/schema.md.
type Account struct {
	Schema       string    `json:"schema"`
	Packets      uint64    `json:"packets"`
	Transactions uint64    `json:"transactions"`
	Kinds        []Kind    `json:"kinds"`
	Services     []Service `json:"services"`
	// Malformed is what Sends of RPC-over-RDMA have headers that cannot be decoded; absent if there are none.
	Malformed []Fault `json:"malformed_headers,omitempty"`
	// First is the first of these Sends; absent if there are none, or if an account is the sum of several inputs that have
	// some, as the numbers of their packets cannot be compared.
	First *FirstFault `json:"first_malformed_header,omitempty"`
	// Line says it in one line.
	Line string `json:"-"`
}

// Kind is a kind of packets; the numbers of all of them add up to those
// of the Account.
type Kind struct {
	Kind    string `json:"kind"`
	Tunnel  string `json:"tunnel,omitempty"`
	Port    uint16 `json:"port,omitempty"`
	Packets uint64 `json:"packets"`
	Bytes   uint64 `json:"bytes"` // on the wire
}

// Service is a service of connections that carried no RPC.
type Service struct {
	Service     string `json:"service"` // "" if its port has no name
	Fabric      string `json:"fabric"`
	Port        uint16 `json:"port,omitempty"`
	ServiceID   uint64 `json:"service_id,omitempty"`
	Connections int    `json:"connections"`
}

// Fault is why the RPC-over-RDMA headers of Sends cannot be decoded, on connections that are known to carry such headers.
type Fault struct {
	Fault string `json:"fault"` // code: short, version, type, list, count, error_code, contradicts
	Sends uint64 `json:"sends"`
}

// FirstFault is a Send whose RPC-over-RDMA header cannot be decoded.
type FirstFault struct {
	Frame  uint64 `json:"frame"`  // number of its last packet
	Offset int    `json:"offset"` // of the fault, in bytes from the start of the Send
	Fault  string `json:"fault"`  // code
}

// New makes the JSON form of a.
func New(a *decode.Account) *Account {
	out := &Account{
		Schema: Schema, Packets: a.Packets, Transactions: a.Transactions,
		Line:  string(text.Account(nil, a, 12)),
		Kinds: make([]Kind, len(a.Kinds)), Services: make([]Service, len(a.Services)),
	}
	for i := range a.Kinds {
		k := a.Kinds[i]
		tunnel := k.Tunnel.String()
		k.Tunnel = 0
		out.Kinds[i] = Kind{Kind: string(text.KindOf(nil, &k.Kind)), Tunnel: tunnel, Port: k.Port, Packets: k.Packets, Bytes: k.Bytes}
	}
	for i, s := range a.Services {
		out.Services[i] = Service{
			Service: rdma.ServiceOn(s.Fabric, s.Port), Fabric: s.Fabric.String(), Port: s.Port, ServiceID: s.ID, Connections: s.Connections,
		}
	}
	for f, n := range a.Malformed.Faults() {
		out.Malformed = append(out.Malformed, Fault{Fault: f.Code(), Sends: n})
	}
	if f := &a.Malformed.First; f.Ref.Seen() {
		out.First = &FirstFault{Frame: f.Ref.Number, Offset: f.Offset, Fault: f.Fault.Code()}
	}
	return out
}
