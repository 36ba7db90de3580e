// Package providers opens the places where a replay happens: fabrics by name (RDMA in
// hardware or software, TCP), and the built-in server, which can listen on several of
// them at a time.
package providers
