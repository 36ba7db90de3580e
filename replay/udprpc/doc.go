// Package udprpc carries RPC over UDP, one message a datagram (RFC 5531, section 4),
// behind the interfaces of package transport: as NLM, NSM and rpcbind still use it. Calls
// without a reply are sent again, with the same XID. Messages are small: MaxMessage.
package udprpc
