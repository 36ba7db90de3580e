// Package session reports NFSv4.1 sessions across their connections: slots, the backward channel,
// trunking, and what each connection carried. Clients of versions without sessions are identified
// by address, for nconnect. For pNFS it reports layouts and devices, and joins I/O to data
// servers with the file named by the metadata server.
package session
