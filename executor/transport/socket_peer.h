// One connection of the socket transport. Messages carry a tag, and those with the same tag keep
// their order. Only as much is sent or received at a time as goes without waiting, so that nobody
// blocks in a system call once the ranks have met (socket_meeting.h).
#pragma once

#include <fmt/format.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <deque>
#include <map>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "model/expected.h"

namespace trainyard {

using RawBytes = std::vector<char>;

struct MessageHead {
  std::int64_t tag = 0, size = 0;
};
// In bytes; more than any host has memory for.
inline constexpr std::int64_t kLargestMessage = std::int64_t{1} << 40;

// The failure of a system call, by errno.
inline Expected<void> system_failure(std::string_view call) {
  return failure("", fmt::format("{} failed: {}", call, std::strerror(errno)));
}

// A connection to one peer: messages waiting to leave, the one that has come in part, and those
// that have arrived.
class SocketPeer {
 public:
  explicit SocketPeer(int socket = -1) : socket_(socket) {}
  ~SocketPeer() {
    if (socket_ >= 0) ::close(socket_);
  }
  SocketPeer(SocketPeer&& other) noexcept : socket_(std::exchange(other.socket_, -1)) {}
  SocketPeer& operator=(SocketPeer&& other) noexcept {
    std::swap(socket_, other.socket_);
    return *this;
  }

  int socket() const { return socket_; }
  bool has_to_send() const { return !leaving_.empty(); }
  bool is_there() const { return socket_ >= 0 && !closed_; }

  void post(std::int64_t tag, const void* data, std::size_t size) {
    const MessageHead head{tag, static_cast<std::int64_t>(size)};
    RawBytes message(sizeof(head) + size);
    std::memcpy(message.data(), &head, sizeof(head));
    if (size > 0) std::memcpy(message.data() + sizeof(head), data, size);
    leaving_.push_back(std::move(message));
  }
  std::optional<RawBytes> taken(std::int64_t tag) {
    auto& queue = arrived_[tag];
    if (queue.empty()) return std::nullopt;
    RawBytes message = std::move(queue.front());
    queue.pop_front();
    return message;
  }

  // Sends as much as goes without waiting. That the peer has gone is no failure here, only for
  // whoever waits for it; what it had sent before is received first.
  Expected<void> send_some() {
    while (!leaving_.empty()) {
      const RawBytes& message = leaving_.front();
      const auto sent = ::send(socket_, message.data() + sent_, message.size() - sent_,
                               MSG_NOSIGNAL | MSG_DONTWAIT);
      if (sent < 0 && (errno == EPIPE || errno == ECONNRESET)) {
        (void)receive_some();
        closed_ = true;
        return {};
      }
      if (sent < 0) return would_wait() ? Expected<void>{} : system_failure("send");
      sent_ += static_cast<std::size_t>(sent);
      if (sent_ < message.size()) return {};
      leaving_.pop_front();
      sent_ = 0;
    }
    return {};
  }
  // Receives as much as has come. The error: what the peer sent is not a message; it lasts.
  Expected<void> receive_some() {
    while (!is_wrong() && is_whole()) keep();
    if (!is_wrong()) return {};
    return failure("", fmt::format("sent a message of {} bytes", head_->size));
  }

 private:
  static bool would_wait() { return errno == EAGAIN || errno == EINTR; }

  bool is_wrong() const { return head_ && (head_->size < 0 || head_->size > kLargestMessage); }

  // Receives without waiting; true when the next head or message is complete.
  bool is_whole() {
    const std::size_t wanted = head_ ? static_cast<std::size_t>(head_->size) : sizeof(MessageHead);
    coming_.resize(wanted);
    if (got_ == wanted) return true;
    const auto got = ::recv(socket_, coming_.data() + got_, wanted - got_, MSG_DONTWAIT);
    // A rank that is done closes its end: a failure only for whoever still waits for it.
    closed_ = got == 0 || (got < 0 && !would_wait());
    if (got > 0) got_ += static_cast<std::size_t>(got);
    return got_ == wanted;
  }
  void keep() {
    got_ = 0;
    if (head_) {
      arrived_[head_->tag].push_back(std::exchange(coming_, {}));
      head_.reset();
      return;
    }
    head_.emplace();
    std::memcpy(&*head_, coming_.data(), sizeof(MessageHead));
    coming_.clear();
  }

  int socket_;
  bool closed_ = false;
  std::deque<RawBytes> leaving_;
  std::size_t sent_ = 0, got_ = 0;
  std::optional<MessageHead> head_;
  RawBytes coming_;
  std::map<std::int64_t, std::deque<RawBytes>> arrived_;
};

}  // namespace trainyard
