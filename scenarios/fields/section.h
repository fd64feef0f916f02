// The table of fields of one kind of object: for each key its shape, its meaning, and how it is
// read into and written from a value of type T. Sections are built once, from the builders below:
//
//   count("layers", &Transformer::layers, "L: transformer layers").required()
//
// A default is not stated but taken from a default-constructed T, so it cannot disagree with it.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "model/units.h"
#include "scenarios/fields/shape.h"

namespace trainyard {

template <typename T>
struct Field {
  FieldSpec spec;
  // Requires: the value passed check(spec.shape).
  std::function<Expected<void>(const Json&, T&, const Place&)> read;
  std::function<std::optional<Json>(const T&)> write;  // none: the key is not written

  Field required() && {
    spec.required = true;
    return std::move(*this);
  }
  // What absence of the key means, where no constant default says it.
  Field absent(std::string_view meaning) && {
    spec.absent = meaning;
    return std::move(*this);
  }
};

// Which keys to write: all, or those that differ from their default.
enum class Keys { all, said };

template <typename T>
class Section {
 public:
  struct Rules {
    // After all fields: fills defaults that depend on other fields, checks rules across fields.
    std::function<Expected<void>(T&, const Place&)> finish;
    std::string tag;  // SectionSpec::tag
  };

  Section(std::string_view name, std::string_view doc, std::vector<Field<T>> fields,
          Rules rules = {})
      : fields_(std::move(fields)), finish_(std::move(rules.finish)) {
    spec_ = {std::string(name), std::string(doc), {}, std::move(rules.tag)};
    for (Field<T>& field : fields_) {
      if (!field.spec.required) field.spec.default_value = field.write(T{});
      spec_.fields.push_back(field.spec);
    }
  }

  const SectionSpec& spec() const { return spec_; }

  // Requires: `object` passed check(spec()).
  Expected<void> read(const Json& object, T& value, const Place& place) const {
    for (const Field<T>& field : fields_) {
      const auto member = object.find(field.spec.key);
      if (member == object.end()) continue;
      const Place at = place / field.spec.key;
      if (auto done = field.read(*member, value, at); !done) return done;
    }
    return finish_ ? finish_(value, place) : Expected<void>{};
  }

  // Writes an object that reads back to `value`.
  Json write(const T& value, Keys keys = Keys::all) const {
    Json object = Json::object();
    for (const Field<T>& field : fields_) {
      auto member = field.write(value);
      const bool is_default = !field.spec.required && member == field.spec.default_value;
      if (member && !(is_default && keys == Keys::said)) {
        object[field.spec.key] = std::move(*member);
      }
    }
    return object;
  }

 private:
  std::vector<Field<T>> fields_;
  std::function<Expected<void>(T&, const Place&)> finish_;
  SectionSpec spec_;
};

namespace detail {

template <typename M>
struct Plain {
  using type = M;
  static const M* of(const M& member) { return &member; }
};
template <typename M>
struct Plain<std::optional<M>> {
  using type = M;
  static const M* of(const std::optional<M>& member) { return member ? &*member : nullptr; }
};
template <typename M>
using PlainOf = typename Plain<M>::type;

template <typename Q>
constexpr Dimension dimension_of();
template <>
constexpr Dimension dimension_of<Bytes>() {
  return Dimension::bytes;
}
template <>
constexpr Dimension dimension_of<BytesPerSecond>() {
  return Dimension::bytes_per_second;
}
template <>
constexpr Dimension dimension_of<Seconds>() {
  return Dimension::seconds;
}
template <>
constexpr Dimension dimension_of<FlopsPerSecond>() {
  return Dimension::flops_per_second;
}
template <>
constexpr Dimension dimension_of<Watts>() {
  return Dimension::watts;
}
template <>
constexpr Dimension dimension_of<DollarsPerSecond>() {
  return Dimension::dollars_per_second;
}

// A field whose value converts directly: `from` a checked Json, and `to` a Json (none: the key is
// absent).
template <typename T, typename M, typename From, typename To>
Field<T> scalar(std::string_view key, M T::*member, Shape shape, std::string_view doc, From from,
                To to) {
  return {{.key = std::string(key), .shape = std::move(shape), .doc = std::string(doc)},
          [member, from](const Json& value, T& owner, const Place&) -> Expected<void> {
            owner.*member = from(value);
            return {};
          },
          [member, to](const T& owner) -> std::optional<Json> {
            const auto* plain = Plain<M>::of(owner.*member);
            return plain == nullptr ? std::nullopt : to(*plain);
          }};
}

}  // namespace detail

enum class Zero { refused, allowed };

template <typename T, typename M>
Field<T> quantity(std::string_view key, M T::*member, std::string_view doc,
                  Zero zero = Zero::refused) {
  using Q = detail::PlainOf<M>;
  constexpr Dimension kDimension = detail::dimension_of<Q>();
  const bool zero_allowed = zero == Zero::allowed;
  return detail::scalar(
      key, member, {QuantityShape{kDimension, zero_allowed}}, doc,
      [zero_allowed](const Json& value) {
        return Q(parse_quantity(value.get<std::string>(), kDimension, zero_allowed).value());
      },
      [zero_allowed](Q value) -> std::optional<Json> {
        if (value.value() == 0 && !zero_allowed) return std::nullopt;
        return format_quantity(value.value(), kDimension);
      });
}

template <typename T, typename M>
Field<T> count(std::string_view key, M T::*member, std::string_view doc, CountShape range = {}) {
  using N = detail::PlainOf<M>;
  return detail::scalar(
      key, member, {range}, doc,
      [](const Json& value) { return static_cast<N>(value.get<double>()); },
      [range](N value) -> std::optional<Json> {
        if (static_cast<double>(value) < range.least) return std::nullopt;  // 0: absent
        return static_cast<std::int64_t>(value);
      });
}

template <typename T, typename M>
Field<T> number(std::string_view key, M T::*member, std::string_view doc, NumberShape range) {
  return detail::scalar(
      key, member, {range}, doc, [](const Json& value) { return value.get<double>(); },
      [range](double value) -> std::optional<Json> {
        const bool said = range.least_allowed ? value >= range.least : value > range.least;
        return said ? std::optional<Json>(value) : std::nullopt;
      });
}

template <typename T, typename M>
Field<T> flag(std::string_view key, M T::*member, std::string_view doc) {
  return detail::scalar(
      key, member, {FlagShape{}}, doc, [](const Json& value) { return value.get<bool>(); },
      [](bool value) -> std::optional<Json> { return value; });
}

// Text, or the name of one of many things.
template <typename T>
Field<T> text(std::string_view key, std::string T::*member, std::string_view doc,
              Shape shape = {TextShape{}}) {
  return detail::scalar(
      key, member, std::move(shape), doc,
      [](const Json& value) { return value.get<std::string>(); },
      [](const std::string& value) -> std::optional<Json> {
        return value.empty() ? std::nullopt : std::optional<Json>(value);
      });
}

template <typename E>
struct Named {
  std::string_view name;
  E value;
};

// Names of an enumeration's values, in the order of the values.
template <typename E, std::size_t N>
constexpr std::array<Named<E>, N> named(const std::array<std::string_view, N>& names) {
  std::array<Named<E>, N> all{};
  for (std::size_t i = 0; i < N; ++i) all[i] = {names[i], static_cast<E>(i)};
  return all;
}

template <typename T, typename E, std::size_t N>
Field<T> choice(std::string_view key, E T::*member,
                const std::array<Named<detail::PlainOf<E>>, N>& names, std::string_view doc) {
  ChoiceShape shape;
  for (const auto& named : names) shape.names.emplace_back(named.name);
  return detail::scalar(
      key, member, {shape}, doc,
      [names](const Json& value) {
        const auto& name = value.get_ref<const std::string&>();
        return std::ranges::find(names, name, &Named<detail::PlainOf<E>>::name)->value;
      },
      [names](detail::PlainOf<E> value) -> std::optional<Json> {
        const auto found = std::ranges::find(names, value, &Named<detail::PlainOf<E>>::value);
        if (found == names.end()) return std::nullopt;  // a value that means "absent"
        return std::string(found->name);
      });
}

// The specification of a section, given its accessor, in the form that shapes need.
template <auto section>
const SectionSpec& spec_of() {
  return section().spec();
}

// A field that is an object of another section. The member may be optional.
template <auto section, typename T, typename M>
Field<T> object(std::string_view key, M T::*member, std::string_view doc) {
  return {{.key = std::string(key),
           .shape = {ObjectShape{&spec_of<section>, {}}},
           .doc = std::string(doc)},
          [member](const Json& value, T& owner, const Place& place) -> Expected<void> {
            detail::PlainOf<M> part;
            auto done = section().read(value, part, place);
            owner.*member = std::move(part);
            return done;
          },
          [member](const T& owner) -> std::optional<Json> {
            const auto* plain = detail::Plain<M>::of(owner.*member);
            if (plain == nullptr) return std::nullopt;
            Json written = section().write(*plain);
            return written.empty() ? std::nullopt : std::optional<Json>(std::move(written));
          }};
}

// A key that is checked but not kept: a remark for readers of the document.
template <typename T>
Field<T> remark(std::string_view key, std::string_view doc, Shape shape = {TextShape{}}) {
  return Field<T>{{.key = std::string(key), .shape = std::move(shape), .doc = std::string(doc)},
                  [](const Json&, T&, const Place&) -> Expected<void> { return {}; },
                  [](const T&) { return std::nullopt; }};
}

template <auto section>
const SectionSpec& sources_spec() {
  static const SectionSpec spec = sources_of(section().spec());
  return spec;
}

// The key `sources`: for keys of the section, where their figures come from.
template <auto section, typename T>
Field<T> sources() {
  return remark<T>("sources", "where the figures of single keys come from",
                   {ObjectShape{&sources_spec<section>, {}}});
}

// A list whose entries are objects of another section.
template <auto section, typename T, typename Entry>
Field<T> objects(std::string_view key, std::vector<Entry> T::*member, std::string_view doc) {
  return {{.key = std::string(key),
           .shape = {ListShape{{Shape{ObjectShape{&spec_of<section>, {}}}}}},
           .doc = std::string(doc)},
          [member](const Json& value, T& owner, const Place& place) -> Expected<void> {
            for (std::size_t i = 0; i < value.size(); ++i) {
              auto done = section().read(value[i], (owner.*member).emplace_back(), place / i);
              if (!done) return done;
            }
            return {};
          },
          [member](const T& owner) -> std::optional<Json> {
            if ((owner.*member).empty()) return std::nullopt;
            Json list = Json::array();
            for (const Entry& entry : owner.*member) list.push_back(section().write(entry));
            return list;
          }};
}

}  // namespace trainyard
