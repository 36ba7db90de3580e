//go:build verbs && cgo && linux

// What this package needs of libibverbs and librdmacm. Both are loaded at run
// time: nothing here may name one of their exported functions directly. The
// functions that the headers define inline (post, poll, notify, windows) go
// through the device's own table and are used as they are.
//
// All functions return 0 or a count, or a negative errno, unless they say
// otherwise.
#ifndef RPCRDMA_RDMA_LIB_H
#define RPCRDMA_RDMA_LIB_H

#include <stddef.h>
#include <stdint.h>
#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

// rc_load loads both libraries; on failure it leaves what is missing in why.
int rc_load(char *why, size_t size);

struct rc_device {
	struct ibv_context *ctx;
	char name[64];
	uint64_t max_msg, guid;
	uint32_t vendor, fw_windows; // fw_windows: type 2 windows
	uint32_t max_qp_wr, max_sge, max_sge_rd, max_cqe;
	uint32_t max_rd_atom, max_init_rd_atom;
	uint32_t max_mw, max_mr;
	int transport, ports;
	int link_layer, port_state, active_mtu, max_mtu; // of port 1
};

// rc_devices fills at most n and returns how many the CM has.
int rc_devices(struct rc_device *out, int n);
int rc_query(struct ibv_context *ctx, struct rc_device *out);
// rc_device_names gives the number of verbs devices, whether or not the CM
// can use them, and the first names, separated by blanks.
int rc_device_names(char *names, size_t size);

// A connection's resources.
struct rc_conn {
	struct rdma_cm_id *id;
	struct ibv_pd *pd;
	struct ibv_comp_channel *channel;
	struct ibv_cq *sends, *recvs; // both report to the channel
	struct ibv_qp *qp;
};

struct rc_event {
	uint64_t token;        // of the identifier that the event is about
	uint64_t listen;       // token of the listener (CONNECT_REQUEST), or 0
	struct rdma_cm_id *id;
	int type, status;
	uint8_t responder_resources, initiator_depth, retry_count, rnr_retry_count;
	uint8_t private_len, has_param;
	uint8_t private_data[256];
};

int rc_channel(struct rdma_event_channel **out, int *fd);
void rc_channel_free(struct rdma_event_channel *ch);
// rc_next takes the next event off the channel and acknowledges it; -EAGAIN
// when there is none. A new identifier (CONNECT_REQUEST) gets next as token.
int rc_next(struct rdma_event_channel *ch, uint64_t next, struct rc_event *out);

int rc_id(struct rdma_event_channel *ch, uint64_t token, struct rdma_cm_id **out);
void rc_id_free(struct rdma_cm_id *id);
int rc_bind(struct rdma_cm_id *id, void *sockaddr, int backlog);
int rc_resolve_addr(struct rdma_cm_id *id, void *sockaddr, int ms);
int rc_resolve_route(struct rdma_cm_id *id, int ms);
// rc_addr copies the local (0) or the peer's (1) address; out has 28 bytes.
void rc_addr(struct rdma_cm_id *id, int peer, void *out);
uint16_t rc_port(struct rdma_cm_id *id); // local port in host order
struct ibv_context *rc_context(struct rdma_cm_id *id);
int rc_port_num(struct rdma_cm_id *id);

int rc_create(struct rc_conn *c, int send_depth, int recv_depth, int sge);
void rc_destroy_qp(struct rc_conn *c);
int rc_destroy(struct rc_conn *c); // all but the identifier; frees what can be freed
int rc_connect(struct rdma_cm_id *id, void *data, int len, int rr, int depth, int retry, int rnr, int accept);
int rc_reject(struct rdma_cm_id *id, void *data, int len);
int rc_disconnect(struct rdma_cm_id *id);
int rc_error(struct ibv_qp *qp); // moves the queue pair to the error state
int rc_qp_info(struct ibv_qp *qp, uint32_t *num, uint32_t *dest, int *mtu, int *sgid_index, int *rd, int *max_rd);

int rc_reg(struct ibv_pd *pd, void *addr, size_t len, uint64_t iova, int access, struct ibv_mr **out);
int rc_dereg(struct ibv_mr *mr);
int rc_window(struct ibv_pd *pd, struct ibv_mw **out);
int rc_window_free(struct ibv_mw *mw);

// A work request without pointers into Go's memory.
struct rc_wr {
	uint64_t wr_id, remote;
	uint64_t bind_addr, bind_len;
	struct ibv_mw *mw; // IBV_WR_BIND_MW, with mr
	struct ibv_mr *mr;
	uint32_t rkey, opcode, flags, access;
	uint32_t sge, num_sge; // index into the array of slices, and count
};
// rc_post posts a list; done says how many the device took.
int rc_post(struct ibv_qp *qp, struct rc_wr *wr, int n, struct ibv_sge *sge, int *done);
// rc_post_recv posts receives of one slice each; their identifiers count up
// from first.
int rc_post_recv(struct ibv_qp *qp, uint64_t first, struct ibv_sge *sge, int n, int *done);
// rc_poll takes completions, first of sends; rc_notify arms both queues, or that
// of receives alone.
int rc_poll(struct rc_conn *c, struct ibv_wc *wc, int n);
int rc_notify(struct rc_conn *c, int sends);
int rc_notify_sends(struct rc_conn *c);
// rc_cq_event takes one event off the channel; -EAGAIN when there is none.
int rc_cq_event(struct ibv_comp_channel *ch);

struct rc_async {
	struct ibv_qp *qp; // 0: the event is about the device or something else
	int type;
};
int rc_async_fd(struct ibv_context *ctx);
int rc_async_next(struct ibv_context *ctx, struct rc_async *out);
int rc_nonblock(int fd);

#endif
